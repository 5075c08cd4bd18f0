"""Keys as OpenSSH itself makes them."""

import shutil
import subprocess
from pathlib import Path

import pytest


def ssh_keygen(path: Path, kind: str = "ed25519", comment: str = "", passphrase: str = "") -> None:
    """Make a key file and its public one beside it, or skip the test where nobody can."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is missing (Debian: openssh-client)")
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", comment, "-f", str(path)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    if "No user exists for uid" in done.stdout + done.stderr:
        pytest.skip("ssh-keygen works only for a user who has a line in /etc/passwd")
    assert done.returncode == 0, done.stderr
