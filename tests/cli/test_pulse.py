"""Whoever waits for a long command reads what it is at, in a log too, and a parser nothing."""

import io
import time

from tests.requirement import shows
from thermite.cli.output import Output
from thermite.cli.pulse import EVERY_S, pulse
from thermite.control.waiting import SAY_EVERY_S


def lines_of(*, as_json: bool = False, quiet: bool = False, at_once: bool = True) -> list[str]:
    errors = io.StringIO()
    output = Output(as_json=as_json, quiet=quiet, out=io.StringIO(), err=errors)
    with pulse(output, "judging x", at_once=at_once, every_s=0.01):
        end = time.monotonic() + 60
        wanted = 0 if as_json or quiet else 3
        while len(errors.getvalue().splitlines()) < wanted and time.monotonic() < end:
            time.sleep(0.01)
    said = errors.getvalue()
    time.sleep(0.05)
    assert errors.getvalue() == said  # nothing is said of what is done
    return said.splitlines()


@shows("U7")
def test_a_line_comes_while_nothing_is_finished() -> None:
    first, *more = lines_of()
    assert first == "judging x"
    assert all(line == "judging x (0 s so far)" for line in more)
    assert lines_of(at_once=False)[0] == "judging x (0 s so far)"


@shows("U7")
def test_words_that_change_are_said_as_they_are_by_then() -> None:
    errors, now = io.StringIO(), ["first"]
    output = Output(out=io.StringIO(), err=errors)
    with pulse(output, lambda: now[-1], every_s=0.01):
        now.append("second")
        end = time.monotonic() + 60
        while "second (0 s so far)" not in errors.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert errors.getvalue().startswith("first\n")
    assert errors.getvalue().endswith("second (0 s so far)\n")


@shows("U7", "U11")
def test_a_parser_and_whoever_wants_no_progress_get_none() -> None:
    assert lines_of(as_json=True) == []
    assert lines_of(quiet=True) == []


@shows("U7")
def test_it_is_said_often_enough() -> None:
    assert max(EVERY_S, SAY_EVERY_S) < 30.0


@shows("U7")
def test_stderr_that_nobody_reads_any_more_does_not_end_the_work() -> None:
    tried: list[str] = []

    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            tried.append(text)
            raise BrokenPipeError

    output, end = Output(out=io.StringIO(), err=Gone()), time.monotonic() + 60
    with pulse(output, "judging x", at_once=False, every_s=0.01):
        while not tried and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)
    assert tried == ["judging x (0 s so far)\n"]  # once, and the work went on to here
