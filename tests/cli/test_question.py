"""What can't be undone is asked for, and never waits for an answer that nobody can give."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

ASKS = """
from thermite.cli.question import agreed
import click
try:
    print(agreed("lose it?", yes=False))
except click.Abort:
    print("went away")
except Exception as error:
    print(type(error).__name__, error)
"""


def answered(stdin: int | None, text: str | None) -> str:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", ASKS],
        stdin=stdin,
        input=text,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("y\n", "True", id="yes"),
        pytest.param("n\n", "False", id="no"),
        pytest.param(
            "", "UsageError there is no terminal to ask at: agree with --yes", id="nobody there"
        ),
    ],
)
def test_a_pipe_may_answer_and_its_end_is_no_interrupt(text: str, said: str) -> None:
    assert answered(None, text) == said


def test_somebody_at_a_terminal_who_goes_away_has_interrupted() -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"\x04")  # the end of what he types
    try:
        assert answered(theirs, None) == "went away"
    finally:
        os.close(ours)
        os.close(theirs)
