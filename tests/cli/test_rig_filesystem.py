"""A rig's folder on a filesystem that no ledger survives is refused before anything is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.operator_desk import ROOT
from tests.requirement import shows

DEAD = """
exec 3<>/dev/fuse || exit 77
mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 far "$0" || exit 77
exec 3>&-
exec "$@"
"""
"""A FUSE filesystem whose program has ended: whatever touches it fails, as on a lost network."""
MOUNTED = {
    "dead": ["sh", "-c", DEAD],
    "living": [sys.executable, str(Path(__file__).with_name("living_fuse.py"))],
}
OPEN = """
import sys
from pathlib import Path
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
try:
    Ledger.open(Path(sys.argv[1]) / "ledger.db", SigningKey.generate(), now=str)
except LedgerError as error:
    sys.exit(f"error: {error}")
"""
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="only root makes accounts")


def inside(mounted: str, far: Path) -> list[str]:
    """Return what starts a program that sees a FUSE filesystem in a folder."""
    far.mkdir()
    begin = ["unshare", "--mount", *MOUNTED[mounted], str(far)]
    if subprocess.run([*begin, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no FUSE filesystem can be mounted here: this needs root and /dev/fuse")
    return begin


def run_inside(
    mounted: str, far: Path, argv: tuple[str, ...]
) -> "subprocess.CompletedProcess[str]":
    """Run Python with a rig's folder on FUSE as its last argument."""
    whole = [*inside(mounted, far), sys.executable, *argv, str(far / "rig")]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    return subprocess.run(whole, env=env, capture_output=True, text=True, check=False, timeout=60)


def refusal(far: Path) -> str:
    return (
        f"error: {far}/rig/ledger.db lies on {far}, a filesystem of type fuse, where SQLite's log"
        " is not safe: put the rig's folder on a local disk, such as /var/lib/thermite"
    )


@pytest.mark.parametrize("mounted", MOUNTED)
@pytest.mark.parametrize(
    ("argv", "code"),
    [
        pytest.param(("-m", "thermite", "rig", "serve", "--state"), 10, id="L1-serve"),
        pytest.param(
            ("-m", "thermite", "rig", "init", "--state"), 10, id="L1-init", marks=ROOT_ONLY
        ),
        pytest.param(("-c", OPEN), 1, id="L1-a ledger that is there"),
    ],
)
def test_a_rig_on_fuse_is_refused_at_once_with_the_filesystems_name(
    tmp_path: Path, argv: tuple[str, ...], code: int, mounted: str
) -> None:
    far = tmp_path / "far"
    done = run_inside(mounted, far, argv)
    words, *calls = done.stderr.splitlines()
    assert (done.returncode, words) == (code, refusal(far))
    assert calls == (["[]"] if mounted == "living" else []), "nothing was read, made or written"


@shows("L1")
def test_a_selftest_of_a_rig_on_fuse_is_refused_at_once(tmp_path: Path) -> None:
    far = tmp_path / "far"
    done = run_inside("living", far, ("-m", "thermite", "rig", "selftest", "--state"))
    assert (done.returncode, done.stderr) == (1, f"{refusal(far)}\n[]\n")
