"""What the supervisor offers and refuses: bytes are believed, words are not."""

import array
import base64
import hashlib
import json
import os
import socket

import msgspec
import pytest

from tests.harness.live import Knock, Live, until
from thermite.errors import LedgerError
from thermite.harness.book import Draft
from thermite.schema.event import IsolationProbe
from thermite.schema.offer import Decided, Offer, Refuse, Wait, encode, name_text


def test_a_body_that_the_supervisor_changed_is_not_trusted(live: Live, knock: Knock) -> None:
    raw = live.orders.command()
    path = live.orders.drop(raw)
    envelope = json.loads(raw)
    payload = base64.b64decode(envelope["payload"]).replace(b"checkpoint_now", b"pause_campaign")
    other = json.dumps(envelope | {"payload": base64.b64encode(payload).decode()}).encode()
    answer = knock.offer(other, path)
    assert isinstance(answer, Decided)
    assert answer.code == "no_trusted_signature"


@pytest.mark.parametrize("how", ["other digest", "unsealed", "no body"])
def test_an_offer_whose_bytes_are_not_what_it_says_is_no_message(
    live: Live, knock: Knock, how: str
) -> None:
    path = live.orders.drop(live.orders.command())
    name = name_text(os.fsencode(path.name))
    sha256 = "0" * 64 if how == "other digest" else hashlib.sha256(b"x").hexdigest()
    message = Offer(n=1, name=name, dev=1, ino=1, sha256=sha256)
    if how == "unsealed":
        descriptor = os.memfd_create("x", os.MFD_ALLOW_SEALING)
        os.write(descriptor, b"x")
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))
        live.theirs.sendmsg([encode(message)], [rights])
        os.close(descriptor)
    else:
        knock.send(message, b"x" if how == "other digest" else None)
    knock.accepted(live.orders.command())  # the next one is answered, this one never
    assert live.types() == ["command_accepted"]
    assert path.exists()


def test_what_the_supervisor_refused_is_recorded_and_moved(live: Live, knock: Knock) -> None:
    path = live.orders.drop(b"no envelope")
    found = path.stat()
    knock.send(
        Refuse(
            n=7,
            name=name_text(os.fsencode(path.name)),
            dev=found.st_dev,
            ino=found.st_ino,
            sha256="a" * 64,
            size=11,
            code="malformed_envelope",
            message="this file is no signed envelope",
        )
    )
    answer = knock.answer(7)
    assert isinstance(answer, Decided)
    assert (answer.outcome, answer.code) == ("refused", "malformed_envelope")
    [event] = live.events("command_refused")
    assert (event.sha256, event.size, event.name) == ("a" * 64, 11, path.name)
    assert not path.exists()


def test_a_supervisor_cannot_lock_the_rig_or_refuse_a_good_command(
    live: Live, knock: Knock
) -> None:
    path = live.orders.drop(b"x")
    refusal = Refuse(
        n=7,
        name=name_text(os.fsencode(path.name)),
        dev=0,
        ino=0,
        sha256=None,
        size=1,
        code="ledger_forked",
        message="",
    )
    knock.send(refusal)
    knock.answer(7)
    assert not live.book.state.ledger_locked
    raw = live.orders.command()
    good = live.orders.drop(raw)
    found = good.stat()
    knock.send(
        msgspec.structs.replace(
            refusal,
            n=8,
            name=name_text(os.fsencode(good.name)),
            dev=found.st_dev,
            ino=found.st_ino,
            sha256=hashlib.sha256(raw).hexdigest(),
            code="key_revoked",
        ),
        raw,
    )
    answer = knock.answer(8)
    assert isinstance(answer, Decided)
    assert answer.outcome == "accepted"


def test_a_file_that_was_replaced_since_the_offer_stays(live: Live, knock: Knock) -> None:
    raw = live.orders.command()
    path = live.orders.drop(raw)
    found = path.stat()
    other = live.orders.command()
    live.orders.drop(other, path.name)
    knock.send(
        Offer(
            n=3,
            name=name_text(os.fsencode(path.name)),
            dev=found.st_dev,
            ino=found.st_ino,
            sha256=hashlib.sha256(raw).hexdigest(),
        ),
        raw,
    )
    answer = knock.answer(3)
    assert isinstance(answer, Decided)
    assert answer.outcome == "accepted"
    assert path.read_bytes() == other
    assert live.files("done") == []


def test_an_unavailable_ledger_leaves_the_file_and_ends_the_process(live: Live) -> None:
    live.open()
    knock = Knock(live)
    live.book.close()
    path = live.orders.drop(live.orders.command())
    raw = path.read_bytes()
    found = path.stat()
    knock.send(
        Offer(
            n=3,
            name=name_text(os.fsencode(path.name)),
            dev=found.st_dev,
            ino=found.st_ino,
            sha256=hashlib.sha256(raw).hexdigest(),
        ),
        raw,
    )
    until(lambda: live.faults, "the process to be told")
    assert isinstance(live.faults[0], LedgerError)
    answer = knock.peer.receive()
    assert isinstance(answer, Wait)
    assert answer.code == "ledger_unavailable"
    assert path.exists()


@pytest.mark.usefixtures("knock")
def test_a_checkpoint_that_no_answer_carries_reaches_the_outbox(live: Live) -> None:
    """A long campaign answers nobody for hours, and a truncation of those would show nowhere."""
    probe = IsolationProbe(level="none", features=[], gaps=[], canaries={})
    live.book.append(Draft(probe))
    newest = live.book.ledger.checkpoint().encode()
    outbox = live.folder.outbox / "checkpoint"
    until(lambda: outbox.read_bytes() == newest, "the checkpoint")
