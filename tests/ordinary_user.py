"""Our own programs run by an ordinary user, for a root who wants to see both on one machine.

Root's clone and interpreter often lie where nobody else may look. What an ordinary user needs is
then copied into an open folder: the working tree's packages, those that are installed beside this
interpreter, and a Python of the same version that everybody may run. Nothing is installed.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
UID: Final = 1777
"""Nobody's account here or elsewhere, below every range that a rig leases from (our figure)."""
_OURS: Final = ("thermite", "supervisor", "tests", "benchmarks", "kits", "noise")
_NOT_NEEDED: Final = shutil.ignore_patterns("__pycache__", "mypy*", "ruff*", "pip*", "*.so.debug")


@dataclass(frozen=True)
class Ordinary:
    """How to run Python as an ordinary user: words before its arguments, folder, environment."""

    prefix: tuple[str, ...]
    folder: Path
    env: dict[str, str]

    def run(self, *argv: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run Python with these arguments to its end."""
        return subprocess.run(
            [*self.prefix, *argv],
            cwd=self.folder,
            env=self.env | variables,
            capture_output=True,
            text=True,
            check=False,
        )


def ordinary_user(place: Path) -> Ordinary | str:
    """Return how to run Python as one; in words why that can't be.

    place: an open folder for what has to be copied; this process's own user where it isn't root.
    """
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    if os.getuid() != 0:
        here = {**env, "HOME": str(Path.home()), "PYTHONPATH": str(ROOT)}
        return Ordinary((sys.executable, "-P"), ROOT, here)
    python = shutil.which(f"python3.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin")
    if python is None:
        return f"no python3.{sys.version_info.minor} in /usr/bin that another user may run"
    folder = place / "ordinary"
    folder.mkdir(mode=0o755)
    for name in _OURS:
        shutil.copytree(ROOT / name, folder / name, ignore=_NOT_NEEDED, symlinks=True)
    packages = folder / "packages"
    shutil.copytree(sysconfig.get_path("purelib"), packages, ignore=_NOT_NEEDED, symlinks=True)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, UID, UID, follow_symlinks=False)
    ids = ("setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--no-new-privs")
    env |= {"HOME": str(folder), "PYTHONPATH": f"{folder}:{packages}"}
    return Ordinary((*ids, python, "-P"), folder, env)
