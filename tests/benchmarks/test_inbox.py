"""The benchmark of a flooded inbox says at once why its rig can't be served."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import inbox
from thermite.command.keyring import SigningKey


def test_a_rig_that_can_not_start_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "rig").write_text("no folder")
    public = tmp_path / "operator.pub"
    public.write_text(f"{SigningKey.generate().public.line('operator')}\n")
    with pytest.raises(SystemExit) as found, inbox.served(tmp_path, public):
        raise AssertionError("nothing is served")
    said = str(found.value)
    assert said.startswith("the rig can't be served (exit 2): ")
    assert f"{tmp_path / 'rig'}" in said


def test_one_that_ends_later_is_told_too(tmp_path: Path) -> None:
    (tmp_path / "rig.log").write_text("full disk\n")
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    process.wait()
    with pytest.raises(SystemExit, match=r"\(exit 3\): full disk"):
        inbox.wait(lambda: False, lambda: inbox.ended(process, tmp_path))
