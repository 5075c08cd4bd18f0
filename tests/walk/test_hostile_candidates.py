"""Candidates that aim at the rig itself: each ends as an attempt, and the rig goes on."""

import os
from collections.abc import Mapping
from pathlib import Path

from tests.crash.sleeper import CONTRACT, lay_out
from tests.served import served
from tests.serving import ended
from thermite.campaign.state import Attempt

SAME = "the build is byte-identical to the champion's"
ANYWHERE = {**CONTRACT, "project": {"repo": "naps", "commit": "HEAD"}}


def patch(path: str, mode: str, line: str) -> str:
    """A patch that adds a file of one line."""
    return (
        f"diff --git a/{path} b/{path}\nnew file mode {mode}\nindex 0000000..2222222\n"
        f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n"
    )


FILES: Mapping[str, Mapping[bytes, str]] = {
    "name-is-not-utf8": {b"caf\xe9.txt": "x"},
    "name-clears-the-screen": {b"\x1b[2J.txt": "x"},
    "names-fill-an-event": {
        b"/".join([bytes([97 + n % 26]) * 200] * 14) + b"/%d" % n: "x" for n in range(120)
    },
    "folder-for-a-file": {b"program.sh/x": "x"},
    "brings-a-kit": {b".kit/build.sh": "echo mine"},
    "brings-a-build": {b"out/program.sh": "echo mine"},
    "talks-to-the-terminal": {b"program.sh": "printf '\\033[2J\\377' >&2; exit 7\n"},
    "links-its-answer": {b"program.sh": 'ln -s /etc/passwd "$1/answer"\n'},
    "answers-too-often": {b"program.sh": 'seq -f "$1/%g" 12000 | xargs touch\n'},
    "stops-itself": {b"program.sh": "kill -STOP $$\n"},
}
DELETES = {
    "deletes-what-is-not-there": "../../etc/passwd\n/etc/passwd\n.git/config\nnothing\n",
    "deletes-everything": "program.sh\n",
}
PATCHES = {
    "submodule": patch("sub", "160000", "Subproject commit " + "1" * 40),
    "symbolic-link": patch("link", "120000", "/etc/passwd"),
    "git-folder": patch(".git/config", "100644", "x"),
    "climbs-out": patch("../x", "100644", "x"),
    "empty": "",
    "no-patch": "\0 no patch",
}
EXPECTED = {
    "answers-too-often": ("invalid", "outputs refused: more than 10000 files and folders"),
    "brings-a-build": ("not_better", SAME),
    "brings-a-kit": ("refused", ""),
    "climbs-out": ("refused", ""),
    "deletes-everything": ("invalid", "build: build failed"),
    "deletes-what-is-not-there": ("no_change", ""),
    "empty": ("refused", ""),
    "folder-for-a-file": ("invalid", "build: build failed"),
    "git-folder": ("refused", ""),
    "links-its-answer": ("invalid", "outputs refused: out/answer is a symbolic link"),
    "name-clears-the-screen": ("not_better", SAME),
    "name-is-not-utf8": ("not_better", SAME),
    "names-fill-an-event": ("not_better", SAME),
    "no-patch": ("refused", ""),
    "stops-itself": ("crash_candidate", "killed: timeout"),
    "submodule": ("refused", ""),
    "symbolic-link": ("refused", ""),
    "talks-to-the-terminal": ("crash_candidate", "exit 7: \\x1b[2J\ufffd"),
}


def lay_out_hostile(home: Path) -> Path:
    """Make project, kit and these candidates, and return the contract's path."""
    contract = lay_out(home, candidates={}, contract=ANYWHERE)
    proposals = home / "proposals"
    for name, files in FILES.items():
        for path, text in files.items():
            into = proposals / name / "files" / os.fsdecode(path)
            into.parent.mkdir(parents=True, exist_ok=True)
            into.write_text(text, encoding="utf-8")
    for name, paths in DELETES.items():
        (proposals / name).mkdir(parents=True)
        (proposals / name / "delete.txt").write_text(paths)
    for name, text in PATCHES.items():
        (proposals / f"{name}.patch").write_text(text)
    return contract


def outcome(attempt: Attempt) -> tuple[str | None, str]:
    said = "; ".join(attempt.verdict.reasons) if attempt.verdict is not None else ""
    wanted = EXPECTED[str(attempt.started.proposal)][1]
    return attempt.result, said[: len(wanted)]


def test_no_candidate_fells_the_rig_or_speaks_to_a_terminal(home: Path) -> None:
    with served(home, users=False) as rig:
        contract = lay_out_hostile(home)
        rig.serve_until_there()
        rig.know()
        rig.assign(contract, "--wait")
        rig.until(lambda: ended(rig), 300)
        assert rig.assignment is not None
        attempts = rig.assignment.attempts.values()
        assert {str(a.started.proposal): outcome(a) for a in attempts} == EXPECTED
        assert rig.assignment.end_reason == "nothing left to propose"
        assert "ended with" not in rig.said(), rig.said()
        for command in ("verdicts", "status", "watch"):
            shown = rig.run(command, "--state", str(rig.state_folder), *UNTIL.get(command, ()))
            assert shown.returncode == 0, shown.stderr
            assert "\x1b" not in shown.stdout + shown.stderr, command
        rig.stop()


UNTIL = {"watch": ("--until", "ended")}
