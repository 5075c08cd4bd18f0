"""Offers that wait at one moment share a commit: one sync, and all of them or none."""

import hashlib
import os
from pathlib import Path

import pytest

from tests.harness.live import Knock, Live, until
from thermite.errors import LedgerUnavailableError
from thermite.harness.blobs import forget, keep_blob, keep_halves, write_half
from thermite.schema.offer import Decided, Offer, Wait, name_text


def offer(live: Live, n: int, raw: bytes) -> Offer:
    path = live.orders.drop(raw)
    found = path.lstat()
    return Offer(
        n=n,
        name=name_text(os.fsencode(path.name)),
        dev=found.st_dev,
        ino=found.st_ino,
        sha256=hashlib.sha256(raw).hexdigest(),
    )


def hand_over(live: Live, knock: Knock, raws: list[bytes]) -> list[int]:
    """Offer several files while the door may not look, so that it finds them all at once."""
    numbers = []
    with live.book.lock:
        for n, raw in enumerate([live.orders.command("nonsense"), *raws], 1):
            knock.send(offer(live, n, raw), raw)
            numbers.append(n)
    return numbers


def test_each_of_a_group_is_decided_by_what_came_before_it(live: Live, knock: Knock) -> None:
    one = live.orders.command()
    numbers = hand_over(live, knock, [one, live.orders.command(), one])
    answers = [knock.answer(n) for n in numbers]
    assert all(isinstance(answer, Decided) for answer in answers)
    outcomes = [answer.outcome for answer in answers if isinstance(answer, Decided)]
    assert outcomes == ["refused", "accepted", "accepted", "duplicate"]
    assert live.types() == ["command_refused", "command_accepted", "command_accepted"]
    assert live.files("new") == []
    assert len(live.files("done")) == 3
    assert live.receipt(answers[3].receipt if isinstance(answers[3], Decided) else None).event_seq


def test_a_ledger_that_takes_nothing_leaves_every_file_where_it_is(
    live: Live, knock: Knock
) -> None:
    live.book.ledger._writer._connection.close()
    numbers = hand_over(live, knock, [live.orders.command(), live.orders.command()])
    until(lambda: live.faults, "the door's fault")
    assert isinstance(live.faults.pop(), LedgerUnavailableError)
    first = knock.peer.receive()
    assert isinstance(first, Wait)
    assert (first.n, first.code) == (numbers[0], "ledger_unavailable")
    assert len(live.files("new")) == 3
    assert live.files("done") == live.files("refused") == []
    assert not list(live.folder.blobs.glob(".half-*"))


def test_a_blob_has_its_name_only_when_it_is_whole(tmp_path: Path) -> None:
    halves = [write_half(tmp_path, name, name.encode()) for name in ("a", "b", "c")]
    assert not (tmp_path / "a").exists()
    keep_halves(tmp_path, [half for half in halves if half is not None])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "a": "a",
        "b": "b",
        "c": "c",
    }
    assert write_half(tmp_path, "a", b"other") is None
    keep_blob(tmp_path, "a", b"other")
    assert (tmp_path / "a").read_text() == "a"


def test_what_is_forgotten_leaves_nothing(tmp_path: Path) -> None:
    half = write_half(tmp_path, "a", b"a")
    assert half is not None
    forget([half])
    assert list(tmp_path.iterdir()) == []


def test_a_blob_that_can_not_be_named_leaves_nothing(tmp_path: Path) -> None:
    half = write_half(tmp_path, "a", b"a")
    assert half is not None
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        keep_halves(tmp_path, [half])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
