"""What is installed without a checkout is whole."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build from what git knows, so that nothing left lying about gets in."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    names = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, names)):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
            (source / name).chmod((ROOT / name).stat().st_mode)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return next(out.glob("thermite_rig-*.whl"))


def test_wheel_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {
        "thermite",
        "supervisor",
        "thermite_rig-0.1.0.dist-info",
    }


def test_wheel_holds_every_module_of_the_tree(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        str(path.relative_to(ROOT))
        for package in ("thermite", "supervisor")
        for path in (ROOT / package).rglob("*.py")
    }
    assert ours <= names


@pytest.mark.parametrize("folder", ["kits", "examples", "schema", "noise"])
def test_wheel_carries_what_is_shipped(wheel: Path, folder: str) -> None:
    there = {
        f"thermite/shipped/{path.relative_to(ROOT)}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert there <= set(zipfile.ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel alone; what it depends on comes from where the tests run."""
    site = tmp_path_factory.mktemp("site")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*install, "--no-deps", "--no-index", "--target", str(site), str(wheel)],
        check=True,
        capture_output=True,
    )
    return site


@pytest.mark.parametrize(
    "env",
    [
        pytest.param({}, id="no HOME"),
        pytest.param({"PYTHONOPTIMIZE": "1"}, id="python -O"),
        pytest.param({"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent"}, id="no such HOME"),
    ],
)
def test_installed_wheel_runs_without_a_checkout(
    installed: Path, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "thermite").mkdir()
    (tmp_path / "thermite" / "__init__.py").write_text("raise SystemExit('somebody else')")
    done = subprocess.run(
        [installed / "bin" / "thermite", "--help"],
        cwd=tmp_path,
        env={"PATH": "/nonexistent", "PYTHONPATH": str(installed)} | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: thermite" in done.stdout


def test_installed_wheel_finds_what_is_shipped_in_itself(installed: Path, tmp_path: Path) -> None:
    code = "from thermite.shipped import _all; print(*_all().values(), sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = {Path(line).relative_to(installed / "thermite/shipped") for line in done.stdout.split()}
    tree = (path for kind in ("kits", "examples") for path in (ROOT / kind).glob("[a-z0-9]*/"))
    assert found == {path.relative_to(ROOT) for path in tree}
