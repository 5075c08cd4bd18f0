"""Build, run and check a known candidate without a rig: what its kit makes of it."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from thermite.kit.manifest import load_kit
from thermite.kit.placeholder import expand, params_json, params_text


def copy(source: Path, target: Path) -> None:
    """Copy a file or a folder to where nothing is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def lay_out(kit: Path, candidate: str, into: Path) -> Path:
    """Lay a candidate's source and the kit's build files out, as before a build."""
    shutil.copytree(kit / "candidates" / "base", into)
    if candidate != "base":
        overlay = kit / "candidates" / candidate / "files"
        shutil.copytree(overlay, into, dirs_exist_ok=True)
    for path in load_kit(kit).build.copy:
        copy(kit / path, into / ".kit" / path)
    return into


def build(kit: Path, candidate: str, into: Path) -> subprocess.CompletedProcess[str]:
    source = lay_out(kit, candidate, into)
    command = load_kit(kit).build.command
    return subprocess.run(
        command, cwd=source, capture_output=True, text=True, timeout=60, check=False
    )


def judged(kit: Path, source: Path, cell: str) -> dict[str, object]:
    """Run a build on a cell and return what the kit's check prints."""
    manifest = load_kit(kit)
    run = source / "run"
    (run / "out").mkdir(parents=True)
    (run / "params.txt").write_bytes(params_text(manifest.cells[cell]))
    (run / "params.json").write_bytes(params_json(manifest.cells[cell]))
    places = {"build": source, "params": run / "params.txt", "params_json": run / "params.json",
              "out": run / "out", "kit": kit}  # fmt: skip
    ran = subprocess.run(
        expand(manifest.run.command, places), cwd=run, capture_output=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    python, *args = expand(manifest.check.command, places)
    assert python == "python3"
    check = subprocess.run(
        [sys.executable, *args], cwd=kit, env={"PATH": "/usr/bin:/bin"}, capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert check.stderr == ""
    return dict(json.loads(check.stdout.splitlines()[-1]))
