"""Who may not read a rig's folder: what is open to him works, and the rest ends in his words."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.operator_desk import ROOT

# Root without the right to pass over modes is, to an owner's files, who an ordinary user is.
AS_ORDINARY = (
    ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.getuid() == 0 else []
)


def ran(cwd: Path, *typed: str) -> tuple[int, str]:
    """Run thermite as one who is held by modes; return its code and both streams."""
    done = subprocess.run(
        [*AS_ORDINARY, sys.executable, "-P", "-m", "thermite", *typed],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(cwd)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("verb", ["drop", "list"])
def test_an_inbox_that_can_be_entered_and_not_listed_takes_what_is_dropped(
    tmp_path: Path, verb: str
) -> None:
    """A rig's own has mode 0710 and the droppers' group."""
    for folder, mode in (("tmp", 0o300), ("new", 0o300), ("work", 0), ("", 0o100)):
        (tmp_path / "inbox" / folder).mkdir(exist_ok=True, parents=True)
        (tmp_path / "inbox" / folder).chmod(0o700 if not folder else mode)
    (tmp_path / "inbox").chmod(0o100)
    (tmp_path / "a.cmd.json").write_text("{}")
    files = ["a.cmd.json"] if verb == "drop" else []
    try:
        code, said = ran(tmp_path, "inbox", verb, *files, "--inbox", "inbox")
    finally:
        for folder in ("", "tmp", "new", "work"):
            (tmp_path / "inbox" / folder).chmod(0o700)
    assert (code, said[:7]) == (0, {"drop": "dropped", "list": "closed "}[verb]), said
    assert len(list((tmp_path / "inbox/new").iterdir())) == len(files)


@pytest.mark.parametrize(
    "typed",
    [
        ["status", "--state", "rig"],
        ["watch", "--state", "rig", "--timeout", "1"],
        ["verdicts", "--state", "rig"],
        ["audit", "rig"],
        ["audit", "rig/ledger.db"],
        ["ledger", "backup", "rig", "copy.db"],
        ["ledger", "tail", "rig"],
        ["export", "3f9c2ab", "--ledger", "rig/ledger.db", "-o", "gain.json"],
    ],
    ids=" ".join,
)
def test_a_ledger_that_is_somebody_elses_is_said_to_be_so(tmp_path: Path, typed: list[str]) -> None:
    (tmp_path / "rig").mkdir(0o711)
    (tmp_path / "rig/ledger.db").touch(0o000)
    (tmp_path / "rig").chmod(0o311)
    try:
        code, said = ran(tmp_path, *typed)
    finally:
        (tmp_path / "rig").chmod(0o711)
    assert (code, said.count("\n")) == (1, 1), said
    assert "rig/ledger.db is not yours to read: ask as the rig's owner or as root" in said
