"""Checkpoints: the page's form to the byte."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command.orders import ALICE, BOB
from thermite.command.note import Checkpoint, open_note, read_note, sign_note
from thermite.errors import LedgerError

CHECKPOINT = Checkpoint(
    rig=ALICE.public.id,
    ledger="b2" * 16,
    size=41,
    root=b"r" * 32,
    head=b"h" * 32,
    time="2026-03-01T12:00:00.25Z",
)
NOTE = sign_note(CHECKPOINT, ALICE)


def test_a_note_has_the_pages_form_to_the_byte() -> None:
    name = f"thermite/{ALICE.public.id}/{'b2' * 16}"
    root = base64.b64encode(b"r" * 32).decode()
    head = base64.b64encode(b"h" * 32).decode()
    text = f"{name}\n41\n{root}\nhead {head}\ntime 2026-03-01T12:00:00.25Z\n"
    key_hash = hashlib.sha256(name.encode() + b"\x0a\x01" + ALICE.public.raw).digest()[:4]
    signed = base64.b64encode(key_hash + ALICE.sign(text.encode())).decode()
    assert text + f"\n— {name} {signed}\n" == NOTE


def test_a_note_reads_back() -> None:
    assert open_note(NOTE, ALICE.public) == CHECKPOINT
    assert read_note(NOTE) == CHECKPOINT


def test_a_note_of_another_key_is_refused() -> None:
    with pytest.raises(LedgerError, match="another key"):
        open_note(NOTE, BOB.public)
    with pytest.raises(LedgerError, match="another key"):
        open_note(sign_note(CHECKPOINT, BOB), ALICE.public)


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_any_changed_byte_is_refused(at: int, by: int) -> None:
    raw = NOTE.encode()
    at %= len(raw)
    changed = raw[:at] + bytes([raw[at] ^ by]) + raw[at + 1 :]
    with pytest.raises(LedgerError):
        open_note(changed.decode("utf-8", "replace"), ALICE.public)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("\n41\n", "\n041\n", id="leading zero"),
        pytest.param("\n41\n", "\n0\n", id="empty tree"),
        pytest.param("\n41\n", "\n\u0664\u0661\n", id="digits of another script"),
        pytest.param("\n41\n", "\n41\r\n", id="CRLF"),
        pytest.param("time 2026-03-01T12:00:00.25Z", "time 2026-13-01T12:00:00Z", id="month 13"),
        pytest.param("cnI=\nhead", "cnJ=\nhead", id="bits left over"),
        pytest.param("\n\n", "\nmore\n\n", id="a sixth line"),
    ],
)
def test_another_form_of_the_same_note_is_refused(old: str, new: str) -> None:
    assert old in NOTE
    with pytest.raises(LedgerError, match="no checkpoint"):
        open_note(NOTE.replace(old, new), ALICE.public)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param(NOTE.rstrip("\n"), id="no last line end"),
        pytest.param(NOTE + NOTE.splitlines()[-1] + "\n", id="two signatures"),
        pytest.param("x" * 2_000_000, id="huge"),
    ],
)
def test_what_is_no_note_is_refused(text: str) -> None:
    with pytest.raises(LedgerError, match="no checkpoint"):
        open_note(text, ALICE.public)


def test_what_no_note_can_hold_is_a_bug() -> None:
    with pytest.raises(RuntimeError, match="no note can hold"):
        sign_note(Checkpoint("x", "y", 1, b"", b"", ""), ALICE)
