"""A rig's folder on a filesystem that no ledger survives is refused before anything is made."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.operator_desk import ROOT

MOUNTS = """
exec 3<>/dev/fuse || exit 77
mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 far "$0" || exit 77
exec 3>&-
exec "$@"
"""
"""A FUSE filesystem whose program has ended: whatever touches it fails, as on a lost network."""


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(("rig", "serve"), id="L1-serve"),
        pytest.param(
            ("rig", "init"),
            id="L1-init",
            marks=pytest.mark.skipif(os.getuid() != 0, reason="only root makes accounts"),
        ),
    ],
)
def test_a_rig_on_fuse_is_refused_at_once_with_the_filesystems_name(
    tmp_path: Path, line: tuple[str, ...]
) -> None:
    far = tmp_path / "far"
    far.mkdir()
    inside = ["unshare", "--mount", "sh", "-c", MOUNTS, str(far)]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("no FUSE filesystem can be mounted here: this needs root and /dev/fuse")
    argv = [sys.executable, "-m", "thermite", *line, "--state", str(far / "rig")]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*inside, *argv], env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 10
    assert done.stderr == (
        f"error: {far}/rig/ledger.db lies on {far}, a filesystem of type fuse, where SQLite's"
        " log is not safe: keep the ledger on a local disk\n"
    )
