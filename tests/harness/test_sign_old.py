"""An idle rig signs its newest events, whoever has the ledger meanwhile, and says what it can't."""

import threading
from collections.abc import Callable

import pytest

from thermite.errors import LedgerBusyError, LedgerUnavailableError
from thermite.harness.rig import sign_old


def found_fatal(outcomes: list[Exception | Callable[[], None]]) -> list[BaseException]:
    """Let a rig look at its ledger with these outcomes, then stop; return what was fatal."""
    stopping, faults = threading.Event(), list[BaseException]()

    def sign() -> None:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        outcome()
        if not outcomes:
            stopping.set()

    sign_old(sign, stopping, faults.append, every_s=0)
    return faults


@pytest.mark.parametrize(
    "error", [LedgerUnavailableError("full"), OSError("gone"), RuntimeError("a fault of ours")]
)
def test_what_keeps_a_checkpoint_from_the_disk_is_fatal_once(error: Exception) -> None:
    """It was a traceback of a thread, and a rig that signed nothing any more."""
    never = [lambda: None]
    assert found_fatal([error, *never]) == [error]


def test_another_program_that_has_the_ledger_only_delays_a_checkpoint() -> None:
    signed: list[int] = []
    busy = LedgerBusyError("another program holds the ledger for writing: end it")
    assert found_fatal([busy, busy, lambda: signed.append(1)]) == []
    assert signed == [1]


def test_a_ledger_that_was_closed_at_a_rigs_end_is_nothing_fatal() -> None:
    stopping, faults = threading.Event(), list[BaseException]()

    def sign() -> None:
        stopping.set()  # the rig closes between the look at the clock and this
        raise LedgerUnavailableError("ledger unavailable: it is closed")

    sign_old(sign, stopping, faults.append, every_s=0)
    assert faults == []
