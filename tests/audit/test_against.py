"""What checkpoints from outside show, and what can't be used as one."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.audit.conftest import Change
from tests.audit.forger import edit, rechain, resign
from tests.audit.test_verify import codes, run, then
from tests.ledger.facts import Clock, Facts
from thermite.audit.against import Outside, OutsideCheck, read_outside
from thermite.audit.findings import Findings
from thermite.audit.notes import Ground
from thermite.audit.verify import audit
from thermite.command import strict_base64
from thermite.command.envelope import seal
from thermite.command.note import Checkpoint, read_note, sign_note
from thermite.command.signing_key import SigningKey
from thermite.errors import UsageError
from thermite.ledger.append import Ledger
from thermite.ledger.merkle import Tree
from thermite.ledger.reading import opened
from thermite.schema.command import RECEIPT_TYPE

Doctored = Callable[[Change], Path]


def note_at(ledger: Path, size: int) -> str:
    with opened(ledger) as connection:
        row = connection.execute("SELECT note FROM checkpoints WHERE size = ?", (size,)).fetchone()
    return str(row[0], "utf-8")


@pytest.fixture
def kept(whole: Path, tmp_path: Path, rig_key: SigningKey) -> Path:
    """A folder of what left the rig at event 21 and 22, in each of its forms, and other files."""
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "checkpoint.txt").write_text(note_at(whole, 21))
    receipt = json.dumps({"v": 1, "outcome": "accepted", "checkpoint": note_at(whole, 22)})
    (folder / "a.receipt.json").write_bytes(seal(receipt.encode(), RECEIPT_TYPE, [rig_key]))
    promotion = {"format": "thermite.promotion/1", "checkpoint": note_at(whole, 21), "events": []}
    (folder / "promotion.json").write_text(json.dumps(promotion))
    (folder / "notes.txt").write_text("hello")
    (folder / "empty.json").write_text("")
    (folder / "refused.receipt.json").write_bytes(
        seal(b'{"v": 1, "checkpoint": null}', RECEIPT_TYPE, [rig_key])
    )
    (folder / "more").mkdir()
    return folder


def test_what_fits_says_how_far_the_ledger_is_witnessed(whole: Path, kept: Path) -> None:
    found = audit(whole, against=[kept])
    assert found.findings == []
    assert (found.newest_external, found.unwitnessed) == (22, 1)
    assert [(tail.seq, tail.events) for tail in found.tails] == [(3, 2)]


@pytest.mark.parametrize("name", ["checkpoint.txt", "a.receipt.json", "promotion.json"])
def test_each_form_of_a_checkpoint_is_read(name: str, whole: Path, kept: Path) -> None:
    assert audit(whole, against=[kept / name]).newest_external in {21, 22}


@pytest.mark.parametrize("name", ["notes.txt", "empty.json", "refused.receipt.json"])
def test_a_named_file_without_a_checkpoint_is_refused(name: str, whole: Path, kept: Path) -> None:
    with pytest.raises(UsageError, match="holds no checkpoint"):
        audit(whole, against=[kept / name])


def test_a_named_file_must_be_there(whole: Path, kept: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        audit(whole, against=[kept / "nothing"])


EDIT = edit(17, b'"gain":0.31', b'"gain":0.91')


def test_a_rewritten_and_re_signed_ledger_is_found_out(
    doctored: Doctored, kept: Path, rig_key: SigningKey
) -> None:
    forged = doctored(then(EDIT, rechain, lambda connection: resign(connection, rig_key)))
    assert codes(audit(forged)) == []
    found = audit(forged, against=[kept / "a.receipt.json"])
    assert codes(found) == [("fork", 22), ("external_mismatch", 22)]
    fork = found.findings[0]
    assert fork.got == note_at(doctored(run("SELECT 1")), 22)
    assert fork.expected is not None
    assert fork.expected.startswith("thermite/")
    assert found.newest_external is None


def test_an_edit_with_pruned_checkpoints_is_found_out(doctored: Doctored, kept: Path) -> None:
    prune = run("DELETE FROM checkpoints WHERE size > 1")
    found = audit(doctored(then(EDIT, rechain, prune)), against=[kept / "checkpoint.txt"])
    assert codes(found) == [("stale_head", 1), ("external_mismatch", 21)]


def test_a_ledger_that_was_cut_is_shorter_than_what_left_it(doctored: Doctored, kept: Path) -> None:
    cut = then(
        run("DELETE FROM events WHERE seq > 2"), run("DELETE FROM checkpoints WHERE size > 2")
    )
    assert codes(audit(doctored(cut))) == []
    found = audit(doctored(cut), against=[kept])
    assert set(codes(found)) == {("shorter_than_checkpoint", 21), ("shorter_than_checkpoint", 22)}


def test_two_signed_checkpoints_of_one_size_are_a_fork(
    whole: Path, kept: Path, rig_key: SigningKey
) -> None:
    other = Checkpoint(
        rig_key.public.id, "0f" * 16, 40, b"\1" * 32, b"\2" * 32, "2026-02-01T00:00:00Z"
    )
    (kept / "b.txt").write_text(sign_note(other, rig_key))
    changed = Checkpoint(**other.__dict__ | {"root": b"\3" * 32})
    (kept / "c.txt").write_text(sign_note(changed, rig_key))
    found = audit(whole, against=[kept])
    assert ("fork", 40) in codes(found)


def test_another_rigs_checkpoint_shows_nothing(
    whole: Path, kept: Path, tmp_path: Path, clock: Clock
) -> None:
    key = SigningKey.generate()
    other = tmp_path / "other" / "ledger.db"
    other.parent.mkdir()
    with Ledger.create(other, Facts(key, clock).opened(), key, now=clock) as foreign:
        note = foreign.newest_note()
    (kept / "foreign.txt").write_text(note)
    found = audit(whole, against=[kept])
    assert [(one.code, one.severity) for one in found.findings] == [
        ("external_unusable", "warning")
    ]
    alone = audit(whole, against=[kept / "foreign.txt"])
    assert codes(alone) == [("external_mismatch", 1)]


def test_a_forged_checkpoint_shows_nothing(whole: Path, kept: Path) -> None:
    text = (kept / "checkpoint.txt").read_text()
    root = text.splitlines()[2]
    (kept / "forged.txt").write_text(text.replace(root, strict_base64.encode(b"\1" * 32)))
    assert codes(audit(whole, against=[kept])) == []
    assert codes(audit(whole, against=[kept / "forged.txt"])) == [("external_mismatch", 21)]


def test_a_key_that_the_auditor_does_not_trust_is_named(whole: Path, rig_key: SigningKey) -> None:
    pinned = audit(whole, trusted=[SigningKey.generate().public, rig_key.public])
    assert (pinned.key_pinned, codes(pinned)) == (True, [])
    found = audit(whole, trusted=[SigningKey.generate().public])
    assert codes(found)[0] == ("key_not_trusted", 1)
    assert ("checkpoint_signature", 21) in codes(found)
    assert found.checkpoints_valid == 0


def test_all_receipts_that_control_keeps_may_be_given(
    whole: Path, kept: Path, tmp_path: Path, rig_key: SigningKey, clock: Clock
) -> None:
    """Each rig has a folder there; those of others say nothing of this one, and are no fault."""
    key, home = SigningKey.generate(), tmp_path / "receipts"
    other = tmp_path / "other" / "ledger.db"
    other.parent.mkdir()
    with Ledger.create(other, Facts(key, clock).opened(), key, now=clock) as foreign:
        note = foreign.newest_note()
    (home / key.public.id).mkdir(parents=True)
    (home / key.public.id / "newest.note").write_text(note)
    assert codes(audit(whole, against=[home]), "warning") == [("no_external_checkpoint", None)]
    shutil.copytree(kept, home / rig_key.public.id)
    found = audit(whole, against=[home])
    assert (found.findings, found.newest_external) == ([], 22)


def test_receipts_that_were_put_aside_are_not_given_with_their_folder(
    whole: Path, kept: Path, rig_key: SigningKey
) -> None:
    """As `lost-1` in an outbox: its events are gone by the owner's own word."""
    gone = Checkpoint(
        rig_key.public.id, "0f" * 16, 99, b"1" * 32, b"2" * 32, "2026-02-01T00:00:00Z"
    )
    (kept / "lost-1").mkdir()
    (kept / "lost-1/a.txt").write_text(sign_note(gone, rig_key))
    assert audit(whole, against=[kept]).findings == []


def test_a_folder_without_any_checkpoint_is_refused(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="empty holds no checkpoint"):
        audit(whole, against=[tmp_path / "empty"])


class Once(Outside):
    """A checkpoint that is never held against another one as a whole."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError(other)

    __hash__ = Outside.__hash__


def test_the_work_grows_with_the_number_of_checkpoints_and_not_with_its_square(
    whole: Path, rig_key: SigningKey
) -> None:
    """Control keeps all receipts: those of a year are many thousands."""
    text = note_at(whole, 21)
    ours, said = (rig_key.public,), read_note(text)
    foreign = Checkpoint(**said.__dict__ | {"ledger": "0e" * 16})
    ground = Ground(said.name, ours, Tree(), {}, whole=True)
    given = [Once("a", text, said), Once("b", text, foreign)] * 50
    findings = Findings()
    OutsideCheck(ground, {}, findings).take(given)
    counted = Counter(one.code for one in findings.listed)
    assert counted == {"shorter_than_checkpoint": 50, "external_unusable": 50}


@pytest.mark.parametrize(
    ("most", "refused"),
    [pytest.param(5, False, id="as many"), pytest.param(4, True, id="one more")],
)
def test_names_of_a_folder_and_of_the_rigs_in_it_are_counted_together(
    whole: Path, tmp_path: Path, most: int, refused: bool
) -> None:
    rig = tmp_path / "receipts" / ("0" * 32)
    rig.mkdir(parents=True)
    (tmp_path / "receipts/newest.note").write_text(note_at(whole, 21))
    for name in ("one.note", "two.note", "three.txt"):
        (rig / name).write_text(note_at(whole, 22))
    if refused:
        with pytest.raises(UsageError, match=f"holds more than {most} files: name fewer"):
            read_outside([tmp_path / "receipts"], most=most)
        return
    found = read_outside([tmp_path / "receipts"], most=most)
    assert [(Path(one.place).name, one.rig) for one in found] == [
        ("newest.note", None),
        ("one.note", rig.name),
        ("three.txt", rig.name),
        ("two.note", rig.name),
    ]
