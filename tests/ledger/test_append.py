"""What `append` promises: whole or not at all, durable, in order, once."""

import linecache
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from types import FrameType
from typing import Any

import msgspec
import pytest

from tests.ledger.facts import Clock, Facts
from tests.requirement import shows
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.encode import encode_all
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


@pytest.mark.parametrize("keyed", [False, True])
def test_a_list_of_any_length_is_written_whole_and_in_order(
    ledger: Ledger, facts: Facts, path: Path, *, keyed: bool
) -> None:
    """Many rows go by one statement, few by one each."""
    sent: list[Event] = []
    for length in (2, 4, 5, 6, 63, 64, 65, 68, 69, 133):
        events = [facts.steered() for _ in range(length)]
        if keyed:
            events[length // 2] = facts.verdict(attempt=length)
        first = ledger.size + 1
        assert ledger.append(events) == [*range(first, first + length)]
        sent += events
    assert [row.event for row in recorded(path, after=1)] == sent


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


def test_a_file_that_another_program_holds_is_said_and_can_be_written_to_afterwards(
    path: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    with Ledger.create(path, facts.opened(), rig_key, now=clock) as ledger:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match="another program holds the ledger"):
                ledger.append([facts.steered()])
        assert ledger.problem is None
        assert ledger.append([facts.steered()]) == [2]
        assert ledger.append([facts.steered(), facts.steered()]) == [3, 4]
        size, head = ledger.size, ledger.head
        root = ledger.root_at(4)
    kept = [*recorded(path)]
    assert [row.seq for row in kept] == [1, 2, 3, 4]
    assert (size, head) == (4, kept[-1].hash)
    with Ledger.open(path, rig_key, now=clock) as again:
        assert again.root_at(4) == root


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
    waiting = [Waiting(encode_all(one)) for one in lists]
    ledger._writer.write(waiting)
    assert [one.seqs for one in waiting if one.problem is None] == [[3], [4, 5], [4]]
    assert "dedup conflict" in str(waiting[1].problem)
    assert [row.type for row in recorded(path, 1)] == [
        "champion_promoted",
        "steered",
        "verdict",
        "verdict",
    ]


def test_an_interrupt_at_any_moment_leaves_nobody_behind_and_acknowledges_nothing_else(
    tmp_path: Path, facts: Facts, rig_key: SigningKey
) -> None:
    """An interrupt comes where Python looks for signals: behind a call, and in each loop."""
    moment, whole = 0, False
    while not whole:
        now = Held()
        place = tmp_path / f"{moment}.db"
        with Ledger.create(place, facts.opened(), rig_key, now=now) as ledger:
            whole = interrupted_at(moment, ledger, now, facts, place)
        moment += 3  # all of them take 5 s
    assert moment > 100


def interrupted_at(moment: int, ledger: Ledger, now: Held, facts: Facts, place: Path) -> bool:
    """Lead for two others, with an interrupt at one moment; return whether none was left."""
    told: dict[str, list[int]] = {}

    def append(event: Event) -> None:
        with suppress(LedgerError):
            told[event.id] = ledger.append([event])

    now.hold()
    threads = [started(lambda: append(facts.refused()))]
    assert now.looked.wait(PATIENCE_S)
    left = moment

    def tracer(frame: FrameType, what: str, _: object) -> Any:  # noqa: ANN401 - as the module says
        nonlocal left
        if not frame.f_code.co_filename.endswith(("ledger/append.py", "ledger/write.py")):
            return None
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        # A `with` line comes again before the lock is given back, where no signal is looked for.
        if what == "line" and not line.lstrip().startswith("with "):
            left -= 1
            if left == -1:
                raise KeyboardInterrupt
        return tracer

    def others() -> None:
        while not (ledger._queue or gone.is_set()):
            time.sleep(0.0005)
        threads.extend(started(partial(append, facts.steered())) for _ in range(2))
        while len(ledger._queue) < 2:
            time.sleep(0.0005)
        now.go.set()

    gone = Flag()
    other = started(others)
    before = sys.gettrace()
    mine = facts.steered()
    sys.settrace(tracer)
    with suppress(KeyboardInterrupt):
        told[mine.id] = ledger.append([mine])
    sys.settrace(before)
    gone.set()
    other.join(PATIENCE_S)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not [one for one in (other, *threads) if one.is_alive()], moment
    append(facts.steered())
    stored = {row.event.id: [row.seq] for row in recorded(place)}
    assert told.items() <= stored.items(), moment
    return left >= 0


def test_a_storm_of_signals_stops_no_other_caller(
    tmp_path: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    """A signal may come inside a lock of the library's own, which no tracer sees."""
    interrupts = 0

    def interrupt(*_: object) -> None:
        nonlocal interrupts
        interrupts += 1
        raise KeyboardInterrupt

    for storm in range(40):
        place = tmp_path / f"{storm}.db"
        with Ledger.create(place, facts.opened(), rig_key, now=clock) as ledger:
            told: dict[str, list[int]] = {}

            def append(ledger: Ledger = ledger, told: dict[str, list[int]] = told) -> None:
                with suppress(LedgerError):
                    for _ in range(40):
                        event = facts.steered()
                        told[event.id] = ledger.append([event])

            others = [started(append) for _ in range(3)]
            before = signal.signal(signal.SIGALRM, interrupt)
            try:
                for step in range(60):
                    with suppress(KeyboardInterrupt, LedgerError):
                        signal.setitimer(signal.ITIMER_REAL, 4e-6 * (1 + step))
                        ledger.append([facts.steered()])
                        signal.setitimer(signal.ITIMER_REAL, 0)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)
            for other in others:
                other.join(PATIENCE_S)
            assert not [other for other in others if other.is_alive()]
        stored = {row.event.id: [row.seq] for row in recorded(place)}
        assert told.items() <= stored.items()
    assert interrupts > 0
