"""What `append` promises: whole or not at all, durable, in order, once."""

import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event as Flag
from threading import Thread

import msgspec
import pytest

from tests.ledger.facts import Clock, Facts
from tests.requirement import shows
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.encode import encode
from thermite.ledger.replay import recorded
from thermite.ledger.write import Waiting
from thermite.schema.event import Event

PATIENCE_S = 30.0


def test_events_come_back_as_they_went_in(ledger: Ledger, facts: Facts, path: Path) -> None:
    events = [facts.accepted(), facts.block(), facts.verdict(), facts.promoted()]
    assert ledger.append(events) == [2, 3, 4, 5]
    assert [row.event for row in recorded(path, after=1)] == events


def test_a_ledger_goes_on_after_it_was_closed(
    ledger: Ledger, facts: Facts, reopen: Callable[[], Ledger]
) -> None:
    ledger.append([facts.steered()])
    head = ledger.head
    ledger.close()
    with reopen() as again:
        assert (again.size, again.head) == (2, head)
        assert again.append([facts.steered()]) == [3]


def test_an_empty_list_is_no_event(ledger: Ledger) -> None:
    assert ledger.append([]) == []
    assert ledger.size == 1


def test_the_same_fact_twice_is_one_event(ledger: Ledger, facts: Facts) -> None:
    assert ledger.append([facts.verdict(), facts.steered()]) == [2, 3]
    assert ledger.append([facts.verdict()]) == [2]
    assert ledger.append([facts.promoted(), facts.promoted()]) == [4, 4]
    assert ledger.size == 4


def test_another_word_on_the_same_attempt_is_refused_whole(ledger: Ledger, facts: Facts) -> None:
    ledger.append([facts.verdict(gain=0.31)])
    with pytest.raises(LedgerError, match="dedup conflict: event 2 is verdict:a5"):
        ledger.append([facts.steered(), facts.verdict(gain=0.32)])
    other = facts.event(msgspec.structs.replace(facts.promoted().data, gain=0.5))
    with pytest.raises(LedgerError, match="dedup conflict: event 3 is promoted:a5"):
        ledger.append([facts.promoted(), other])
    assert ledger.size == 2
    assert ledger.append([facts.steered()]) == [3]


@shows("L6")
def test_many_threads_get_numbers_without_gap(ledger: Ledger, facts: Facts, path: Path) -> None:
    got: list[int] = []

    def produce(events: list[Event]) -> None:
        for event in events:
            got.extend(ledger.append([event]))

    threads = [
        Thread(target=produce, args=([facts.steered() for _ in range(25)],)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(2, 202))
    assert [row.seq for row in recorded(path)] == list(range(1, 202))


class Held:
    """A clock that holds up whoever looks at it, and with him the transaction that he writes."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.go, self.looked = Flag(), Flag()
        self.go.set()

    def __call__(self) -> str:
        self.looked.set()
        assert self.go.wait(PATIENCE_S)
        return self.clock()

    def hold(self) -> None:
        self.looked.clear()
        self.go.clear()


def started(act: Callable[[], object]) -> Thread:
    thread = Thread(target=act)
    thread.start()
    return thread


def queued(ledger: Ledger, count: int) -> None:
    end = time.monotonic() + PATIENCE_S
    while len(ledger._queue) < count:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_all_that_come_during_a_transaction_share_the_next_one(
    path: Path, facts: Facts, rig_key: SigningKey
) -> None:
    now = Held()
    with Ledger.create(path, facts.opened(), rig_key, now=now) as ledger:
        now.hold()
        threads = [started(lambda: ledger.append([facts.refused()]))]
        assert now.looked.wait(PATIENCE_S)
        threads += [started(lambda: ledger.append([facts.refused()])) for _ in range(5)]
        queued(ledger, 5)
        now.go.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert ledger.size == 7
    with closing(sqlite3.connect(path)) as connection:
        notes = connection.execute("SELECT size FROM checkpoints ORDER BY size").fetchall()
    assert notes == [(1,), (2,), (7,)]  # each transaction with a refusal is signed


def test_one_that_is_interrupted_while_it_waits_leaves_nobody_behind(
    path: Path, facts: Facts, rig_key: SigningKey
) -> None:
    now = Held()
    with Ledger.create(path, facts.opened(), rig_key, now=now) as ledger:
        now.hold()
        threads = [started(lambda: ledger.append([facts.refused()]))]
        assert now.looked.wait(PATIENCE_S)

        def after_the_interrupted() -> None:
            queued(ledger, 1)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            ledger.append([facts.steered()])

        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        threads.append(started(after_the_interrupted))
        with pytest.raises(KeyboardInterrupt):
            ledger.append([facts.steered()])
        signal.signal(signal.SIGALRM, before)
        queued(ledger, 1)
        now.go.set()
        for thread in threads:
            thread.join(PATIENCE_S)
        assert ledger.size == 3
        assert ledger.append([facts.steered()]) == [4]


def test_an_interrupt_in_the_middle_leaves_nothing_behind(
    path: Path, facts: Facts, rig_key: SigningKey
) -> None:
    clock = Clock()
    interrupts = iter([False, True, False, False])

    def now() -> str:
        if next(interrupts):
            raise KeyboardInterrupt
        return clock()

    with Ledger.create(path, facts.opened(), rig_key, now=now) as ledger:
        with pytest.raises(KeyboardInterrupt):
            ledger.append([facts.steered(), facts.promoted()])  # signed at once
        assert ledger.problem is None
        assert ledger.append([facts.steered()]) == [2]
    assert [row.seq for row in recorded(path)] == [1, 2]


def test_a_conflict_does_not_touch_what_shares_its_transaction(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    ledger.append([facts.promoted()])
    other = facts.event(msgspec.structs.replace(facts.promoted().data, gain=0.5))
    lists = [
        [facts.steered()],
        [facts.verdict(), other, facts.verdict(2)],
        [facts.verdict(), facts.verdict(2)],
        [facts.verdict()],
    ]
    waiting = [Waiting([encode(event) for event in one]) for one in lists]
    ledger._writer.write(waiting)
    assert [one.seqs for one in waiting if one.problem is None] == [[3], [4, 5], [4]]
    assert "dedup conflict" in str(waiting[1].problem)
    assert [row.type for row in recorded(path, 1)] == [
        "champion_promoted",
        "steered",
        "verdict",
        "verdict",
    ]
