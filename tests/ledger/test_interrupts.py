"""An interrupt while SQLite asks whether a statement may be is told as one, wherever it comes."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.ledger.facts import Facts
from thermite.audit.verify import audit
from thermite.ledger import tables
from thermite.ledger.append import Ledger
from thermite.ledger.replay import newest, recorded

WHERE = {"asked", "_may_read", "_may_append", "_only_looks"}


@contextmanager
def interrupted_at(moment: int) -> Iterator[Callable[[], bool]]:
    """Interrupt the n-th call that is made of us by SQLite; give whether there were as many.

    A signal is heard where a function begins, as the tracer raises here.
    """
    left = moment

    def tracer(frame: FrameType, what: str, _: object) -> Any:  # noqa: ANN401 - as sys says
        nonlocal left
        code = frame.f_code
        if what == "call" and code.co_name in WHERE and code.co_filename.endswith("tables.py"):
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield lambda: left < 0
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda path: list(recorded(path)), id="replay"),
        pytest.param(newest, id="the last event"),
        pytest.param(audit, id="audit"),
    ],
)
def test_no_reader_calls_an_interrupt_damage(filled: Path, read: Callable[[Path], object]) -> None:
    """`not authorized` was a damaged file, and in an audit a finding."""
    whole, moment = read(filled), 0
    while True:
        with interrupted_at(moment) as was:
            try:
                assert read(filled) == whole
            except KeyboardInterrupt:
                assert was()
            else:
                assert not was(), f"call {moment} was interrupted and nobody said so"
        if not was():
            break
        moment += 1
    assert moment > 3


def test_a_writer_that_was_interrupted_says_so_and_goes_on(
    filled: Path, facts: Facts, reopen: Callable[[], Ledger]
) -> None:
    """It was `ledger unavailable: not authorized (SQLITE_AUTH) … look after the disk`."""
    moment = 0
    while True:
        size = newest(filled)
        with reopen() as ledger, interrupted_at(moment) as was:
            try:
                ledger.append([facts.steered()])
                ledger.append([facts.steered(), facts.refused()])
            except KeyboardInterrupt:
                assert was()
            else:
                assert not was(), f"call {moment} was interrupted and nobody said so"
        with reopen() as ledger:
            assert ledger.problem is None
            assert ledger.append([facts.steered()]) == [ledger.size]
            assert ledger.size > size
        if not was():
            break
        moment += 1
    assert moment > 3


def test_what_we_refuse_ourselves_is_no_interrupt(filled: Path) -> None:
    connection = tables.reader(filled)
    for statement in ("DELETE FROM events", "PRAGMA user_version=2", "SELECT load_extension('x')"):
        with pytest.raises(sqlite3.DatabaseError):
            connection.execute(statement)
    connection.close()
