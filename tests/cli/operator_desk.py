"""A folder with control, a rig, a project and a kit, in which commands run as processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.control.desk import CONTRACT, Rig, kit_files, make_repo, make_rig, write

ROOT = Path(__file__).parents[2]


class Desk:
    """A folder with control, a rig, a project and a kit; commands run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.more: dict[str, str] = {}
        self.rig: Rig = make_rig(folder / "rig")
        write(folder / "project", {"contract.json": json.dumps(CONTRACT)})
        make_repo(folder / "project", {"main.c": "int main(void) { return 0; }\n"})
        write(folder / "kit", kit_files())

    @property
    def env(self) -> dict[str, str]:
        """The surroundings of a command there."""
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "THERMITE_DATA": str(self.folder / "control"),
            **self.more,
        }

    def run(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "thermite", *args],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.env,
            check=False,
            timeout=300,
        )
        assert "Traceback" not in done.stderr
        return done

    def told(self, *args: str, code: int = 0) -> dict[str, Any]:
        done = self.run(*args, "--json")
        assert done.returncode == code, done.stderr
        assert done.stderr == ""
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def assign(self, *args: str, code: int = 0) -> dict[str, Any]:
        return self.told(
            "assign", "project/contract.json", "--kit", "kit", "--rig", "bench", *args, code=code
        )


def known_desk(folder: Path) -> Desk:
    """A desk with a key and a rig that control knows."""
    made = Desk(folder)
    made.told("keygen", "--no-passphrase")
    fingerprint = made.rig.key.public.fingerprint
    made.told("rig", "add", "bench", "--inbox", "rig/inbox", "--fingerprint", fingerprint)
    return made
