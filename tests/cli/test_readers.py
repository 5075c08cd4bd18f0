"""Every command's output reaches whoever reads it: a parser, a pipe, a narrow console, `head`."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.cli.operator_desk import Desk
from tests.cli.tree import LEAVES
from tests.cli.typed import NOT_TYPED, STREAMS, TAKES_SECONDS, TYPED, lay_out, run_all
from tests.requirement import shows


@pytest.fixture
def typing(desk: Desk) -> Desk:
    return lay_out(desk)


def test_a_line_is_typed_for_every_command() -> None:
    assert {name for _, name, _ in TYPED} | NOT_TYPED == {" ".join(path) for path in LEAVES}


@shows("U1", "U11", "U12")
def test_joined_streams_of_every_command_are_one_document_while_git_warns(typing: Desk) -> None:
    for name in ("Проект 🚀", "kit"):
        folder = typing.folder / name
        if name == "kit":
            git(folder, "init", "-q")
            git(folder, "add", "-A")
            git(folder, "commit", "-q", "-m", "kit")
        git(folder, "update-ref", "refs/heads/HEAD", "HEAD^{commit}")
        assert "is ambiguous" in git(folder, "rev-parse", "HEAD").stderr
    came, _ = run_all(typing, "--json", env={}, without={"rig doctor"})
    for ran in came:
        assert (ran.name, ran.code, ran.said) == (ran.name, ran.wanted, ran.said)
        for text in ran.said.splitlines() if ran.name in STREAMS else [ran.said]:
            assert isinstance(json.loads(text), dict), ran
    warned = {ran.name for ran in came if '"warnings"' in ran.said}
    assert {"key revoke", "rig add"} <= warned


@shows("U3", "U4")
def test_no_command_needs_a_wide_console_or_colours_a_pipe(typing: Desk) -> None:
    poor = {"LANG": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    colour = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": "", "CI": "true"}
    came, _ = run_all(typing, env=poor | colour, without=TAKES_SECONDS)
    for ran in came:
        assert (ran.name, ran.code, ran.said) == (ran.name, ran.wanted, ran.said)
        assert "Traceback" not in ran.said
        assert "\x1b" not in ran.said


@shows("U2")
def test_a_reader_that_leaves_after_the_first_line_sees_no_traceback(typing: Desk) -> None:
    env = {"PYTHONUNBUFFERED": "1", "PYTHONOPTIMIZE": "1"}
    came, errors = run_all(typing, read=1, env=env, without=TAKES_SECONDS)
    for ran in came:
        assert ran.code in {ran.wanted, 1}, ran
    # What has said all before its reader leaves ends as ever; of these two one has more to say.
    assert {ran.name for ran in came if ran.code != ran.wanted} & {"ledger tail", "watch"}
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


def git(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    argv = ["git", "-C", str(folder), *who, *args]
    return subprocess.run(argv, check=True, capture_output=True, text=True)
