"""Whoever reads a command's output can: a person, a pipe, a parser, a narrow console."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.sample import HOSTILE
from tests.requirement import shows

ROOT = Path(__file__).parents[2]
RUN = """
import sys
from thermite.cli.commands import Subcommand
from thermite.cli.root import run
sys.exit(run(sys.argv[1:], {"sample": Subcommand("tests.cli.sample", "Say something")}))
"""
CLEAN = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT)}


def sample(*args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", RUN, "sample", *args],
        capture_output=True,
        env=CLEAN | env,
        check=False,
        timeout=60,
    )


@shows("U4")
@pytest.mark.parametrize(
    "env",
    [
        pytest.param({}, id="plain"),
        pytest.param({"NO_COLOR": "1"}, id="no colour"),
        pytest.param({"NO_COLOR": ""}, id="empty NO_COLOR"),
        pytest.param({"FORCE_COLOR": "1"}, id="forced colour"),
        pytest.param({"TERM": "xterm-256color", "CI": "true"}, id="build server"),
        pytest.param({"TERM": "dumb"}, id="dumb terminal"),
    ],
)
def test_no_escape_sequence_reaches_a_pipe(env: dict[str, str]) -> None:
    done = sample(**env)
    assert done.returncode == 0, done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"[bold]table[/bold]" in done.stdout


def test_control_and_reordering_characters_are_written_out() -> None:
    assert "result café ✔ \\x1b[31mred\\x1b[0m \\u202ekcab\n" in sample().stdout.decode()


@shows("U3")
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("args", [(), ("--json",), ("--ends", "refused")])
def test_no_console_is_too_narrow(encoding: str, args: tuple[str, ...]) -> None:
    done = sample(*args, LANG="C", PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert b"Traceback" not in done.stderr
    assert done.returncode in {0, 4}


@shows("U1", "U11")
def test_json_is_one_document_even_with_both_streams_joined() -> None:
    done = sample("--json")
    document = json.loads(done.stdout + done.stderr)
    assert document == {"text": HOSTILE, "warnings": [f"isolation is none for {HOSTILE}"]}


def test_json_of_a_failure_is_one_document() -> None:
    done = sample("--json", "--ends", "refused")
    document = json.loads(done.stdout)
    assert done.returncode == 4
    assert document["exit"] == 4
    assert document["error"] == f"for rig {HOSTILE}"


def test_wrong_usage_is_one_document_too() -> None:
    done = sample("--json", "--nonsense")
    assert done.returncode == 2
    assert json.loads(done.stdout)["exit"] == 2
    assert done.stderr == b""


@shows("U11")
def test_quiet_leaves_progress_out_and_keeps_warnings() -> None:
    errors = sample("--quiet").stderr.decode()
    assert "working" not in errors
    assert "warning: isolation" in errors


@pytest.mark.parametrize(
    ("ends", "code", "text"),
    [
        pytest.param("refused", 4, "error: for rig café", id="sender's fault"),
        pytest.param("infrastructure", 10, "error: disk is full\n", id="rig's fault"),
        pytest.param("audit", 8, "", id="ends without a word"),
        pytest.param("interrupt", 130, "error: interrupted\n", id="interrupted"),
        pytest.param(
            "missing", 1, "error: '/nonexistent/file': no such file or directory\n", id="no file"
        ),
    ],
)
def test_every_end_has_words_and_a_code(ends: str, code: int, text: str) -> None:
    done = sample("--ends", ends)
    assert done.returncode == code
    assert text in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_a_bug_looks_like_one() -> None:
    done = sample("--ends", "bug")
    assert done.returncode == 1
    assert b"ZeroDivisionError" in done.stderr


@shows("U2")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_enough_ends_it_quietly(unbuffered: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "sample", "--lines", "20000", "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=CLEAN | {"PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(timeout=60) == 1
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


def test_closed_streams_are_no_crash() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" sample >&- 2>&-', sys.executable, RUN],
        env=CLEAN,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0


def test_a_person_at_a_terminal_gets_colour_unless_refused() -> None:
    assert b"\x1b[31m" in at_terminal({"TERM": "xterm-256color"})
    assert b"\x1b[31m" not in at_terminal({"TERM": "xterm-256color", "NO_COLOR": "1"})
    assert b"\x1b" not in at_terminal({"TERM": "dumb"})


def at_terminal(env: dict[str, str]) -> bytes:
    """Return what both streams show on a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "sample"],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env=CLEAN | env,
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # Linux says so when the other end is closed
            pass
        os.close(ours)
        assert process.wait(timeout=60) == 0
    return seen
