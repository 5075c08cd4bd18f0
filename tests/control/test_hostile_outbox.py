"""Whatever lies in an outbox or in control's own folder is named and not waited for."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.desk import Rig
from tests.control.test_receipts import known, order
from thermite.cli.root import run
from thermite.command.envelope import seal
from thermite.control import receipts
from thermite.control.home import ControlHome
from thermite.control.order import Order
from thermite.control.receipts import NEWEST, collect, folder_of
from thermite.control.rigs import KnownRig
from thermite.control.waiting import Turned, wait_for
from thermite.errors import UnreachableError
from thermite.schema.command import RECEIPT_TYPE

__all__ = ["known", "order"]

NAME = f"{'a' * 12}.accepted.receipt.json"
KINDS = ["pipe", "folder", "loop", "endless", "socket"]
TEXTS = {
    "empty": b"",
    "large": b"x" * 3_000_000,
    "deep": b"[" * 60_000,
    "a deep payload": b'{"payload":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "no text": b"\xff\xfe\x00{}",
}


def put(path: Path, what: str) -> None:
    match what:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "endless":
            path.symlink_to("/dev/zero")
        case "socket":
            with socket.socket(socket.AF_UNIX) as one:
                here = os.open(path.parent, os.O_RDONLY)
                one.bind(f"/proc/self/fd/{here}/{path.name}")
                os.close(here)
        case _:
            path.write_bytes(TEXTS[what])


@pytest.fixture
def outbox(rig: Rig, known: KnownRig) -> Iterator[Path]:
    yield rig.outbox
    assert known.outbox == rig.outbox


@pytest.mark.parametrize("what", [*KINDS, *TEXTS])
def test_what_is_no_receipt_is_named_and_not_kept(
    what: str, outbox: Path, home: ControlHome, known: KnownRig, capsys: pytest.CaptureFixture[str]
) -> None:
    put(outbox / NAME, what)
    place = ["--data", str(home.root)]
    assert run(["receipts", "list", *place]) == 0
    assert f"{NAME}  can't be believed: " in capsys.readouterr().out
    assert run(["receipts", "verify", str(outbox / NAME), "--rig", "bench", *place]) == 4
    assert f"{NAME}  can't be believed: " in capsys.readouterr().out
    assert list(folder_of(home, known).iterdir()) == []


def test_what_a_rig_signs_is_shown_and_does_nothing(
    rig: Rig, home: ControlHome, known: KnownRig, order: Order, capsys: pytest.CaptureFixture[str]
) -> None:
    path = rig.answer(
        order.raw, "accepted", code="\x1b]0;x\x07", message="\x1b[2J\u202e\x00", at="\x9b"
    )
    assert run(["receipts", "list", "--data", str(home.root)]) == 0
    shown = capsys.readouterr().out.rstrip("\n")
    assert shown.isprintable()
    assert "accepted" in shown
    path.write_bytes(seal(b"[" * 3000 + b"]" * 3000, RECEIPT_TYPE, [rig.key]))
    (item,) = collect(home, known)
    assert item.receipt is None


@pytest.mark.parametrize("what", [*KINDS, "deep", "no text", "empty"])
@pytest.mark.parametrize("place", [NEWEST, f"{'a' * 12}.sent.json"])
def test_what_control_keeps_and_somebody_changed_is_named(
    what: str,
    place: str,
    outbox: Path,
    home: ControlHome,
    known: KnownRig,
    order: Order,
    rig: Rig,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert outbox.is_dir()
    rig.answer(order.raw, "accepted")
    put(folder_of(home, known) / place, what)
    assert run(["receipts", "list", "--data", str(home.root)]) in {1, 2}
    assert place in capsys.readouterr().err


def test_an_order_whose_time_is_none_is_named(
    home: ControlHome, known: KnownRig, capsys: pytest.CaptureFixture[str]
) -> None:
    note = '{"digest":"a","id":"b","type":"c","at":"yesterday","file":"d"}'
    (folder_of(home, known) / "a.sent.json").write_text(note)
    assert run(["receipts", "list", "--data", str(home.root)]) == 2
    assert "a.sent.json is not as control writes it" in capsys.readouterr().err


@pytest.mark.parametrize("what", [*KINDS, *TEXTS])
def test_a_card_that_is_none_is_named(
    what: str, outbox: Path, home: ControlHome, capsys: pytest.CaptureFixture[str]
) -> None:
    (outbox / "rig.json").unlink(missing_ok=True)
    put(outbox / "rig.json", what)
    inbox = str(outbox.with_name("inbox"))
    before = home.rigs.read_bytes()
    assert run(["rig", "add", "bench", "--inbox", inbox, "--data", str(home.root)]) in {4, 6}
    assert "rig.json" in capsys.readouterr().err
    assert home.rigs.read_bytes() == before


def test_a_reason_that_is_a_pipe_is_not_waited_for(rig: Rig, known: KnownRig, order: Order) -> None:
    refused = rig.inbox / "refused"
    refused.mkdir(exist_ok=True)
    reason = refused / "1-2-o.cmd.json.reason.json"
    os.mkfifo(reason)
    assert wait_for(known, order, "o.cmd.json", most_s=0, tell=print) is None
    reason.unlink()
    reason.write_text('{"code": "x", "message": "y"}')
    found = wait_for(known, order, "o.cmd.json", most_s=0, tell=print)
    assert found == Turned(code="x", message="y")


def test_an_outbox_that_fills_the_memory_is_not_read_to_its_end(
    rig: Rig, home: ControlHome, known: KnownRig, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.answer(order.raw, "accepted")
    assert len(collect(home, known)) == 1
    monkeypatch.setattr(receipts, "MOST_OF_ALL", 1000)
    with pytest.raises(UnreachableError, match="holds more than 0 MiB of receipts"):
        collect(home, known)
