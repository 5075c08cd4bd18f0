"""What an audit finds in a ledger that somebody changed, and where."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.audit.conftest import Change
from tests.audit.forger import edit, rechain, renumber, resign
from tests.ledger.facts import Clock, Facts
from tests.ledger.test_opening import append_unknown
from tests.requirement import shows
from thermite.audit.verify import audit, prove
from thermite.command import strict_base64
from thermite.command.note import read_note
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.merkle import root_of_inclusion
from thermite.ledger.reading import opened
from thermite.schema.audit import Audit
from thermite.schema.event import Event

Doctored = Callable[[Change], Path]


def codes(found: Audit, severity: str = "finding") -> list[tuple[str, int | None]]:
    return [
        (one.code, one.size if one.seq is None else one.seq)
        for one in found.findings
        if one.severity == severity
    ]


def then(*steps: Change) -> Change:
    def change(connection: sqlite3.Connection) -> None:
        for step in steps:
            step(connection)

    return change


def run(statement: str, *values: object) -> Change:
    return lambda connection: connection.execute(statement, values)


def test_a_whole_ledger_has_no_finding(whole: Path) -> None:
    found = audit(whole)
    assert codes(found) == []
    assert codes(found, "warning") == [("no_external_checkpoint", None)]
    assert not found.fails
    assert (found.events, found.checkpoints, found.checkpoints_valid) == (23, 4, 4)
    assert (found.newest_checkpoint, found.unwitnessed) == (23, 23)
    assert (found.accepted, found.refused) == ({"e1" * 16: 1}, {"wrong_rig": 1})


def test_a_live_ledger_is_audited_while_it_is_written(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    ledger.append([facts.probe(), facts.probe()])
    found = audit(path)
    assert codes(found) == []
    assert codes(found, "warning") == [("unsigned_tail", 1), ("no_external_checkpoint", None)]


EDIT = edit(17, b'"gain":0.31', b'"gain":0.91')
UNSIGN = run("DELETE FROM checkpoints WHERE size > 1")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            EDIT,
            [
                ("body_hash", 17),
                ("checkpoint_root", 21),
                ("checkpoint_root", 22),
                ("checkpoint_root", 23),
                ("stale_head", 1),
            ],
            id="an edit",
        ),
        pytest.param(
            then(EDIT, rechain),
            [
                ("checkpoint_root", 21),
                ("checkpoint_head", 21),
                ("checkpoint_root", 22),
                ("checkpoint_head", 22),
                ("checkpoint_root", 23),
                ("checkpoint_head", 23),
                ("stale_head", 1),
            ],
            id="an edit, rechained",
        ),
        pytest.param(
            then(EDIT, rechain, UNSIGN), [("stale_head", 1)], id="an edit, rechained and pruned"
        ),
        pytest.param(
            run("DELETE FROM events WHERE seq = 20"),
            [
                ("seq_gap", 21),
                ("checkpoint_root", 21),
                ("checkpoint_root", 22),
            ],
            id="a deletion",
        ),
        pytest.param(
            then(run("DELETE FROM events WHERE seq = 20"), renumber),
            [
                ("body_hash", 20),
                ("body_hash", 21),
                ("body_hash", 22),
                ("checkpoint_root", 21),
                ("checkpoint_head", 21),
                ("checkpoint_root", 22),
                ("checkpoint_head", 22),
                ("shorter_than_checkpoint", 23),
                ("stale_head", 1),
            ],
            id="a deletion, renumbered",
        ),
        pytest.param(
            then(
                run("UPDATE events SET seq = 99 WHERE seq = 19"),
                run("UPDATE events SET seq = 19 WHERE seq = 20"),
                run("UPDATE events SET seq = 20 WHERE seq = 99"),
            ),
            [
                ("body_hash", 19),
                ("body_hash", 20),
                ("body_hash", 21),
                ("checkpoint_root", 21),
                ("checkpoint_root", 22),
                ("checkpoint_root", 23),
                ("stale_head", 1),
            ],
            id="a swap",
        ),
        pytest.param(
            run("DELETE FROM events WHERE seq > 21"),
            [("shorter_than_checkpoint", 22), ("shorter_than_checkpoint", 23)],
            id="a truncation",
        ),
        pytest.param(
            then(
                run("DELETE FROM events WHERE seq > 15"),
                run("DELETE FROM checkpoints WHERE size > 15"),
            ),
            [("stale_head", 1)],
            id="a truncation with its checkpoints, after an accepted command",
        ),
        pytest.param(run("DELETE FROM checkpoints"), [("stale_head", 0)], id="no checkpoint"),
        pytest.param(
            run("UPDATE checkpoints SET size = 20 WHERE size = 21"),
            [("checkpoint_unreadable", 20)],
            id="a checkpoint under another size",
        ),
        pytest.param(
            run("UPDATE events SET type = 'steered' WHERE seq = 2"),
            [("column_mismatch", 2)],
            id="a type column",
        ),
        pytest.param(
            run("UPDATE events SET dedup = NULL WHERE seq = 17"),
            [("column_mismatch", 17)],
            id="a key removed",
        ),
        pytest.param(
            run("UPDATE events SET hash = zeroblob(32) WHERE seq = 9"),
            [("body_hash", 9)],
            id="only a hash",
        ),
        pytest.param(
            run("UPDATE events SET body = CAST('{}' AS BLOB) WHERE seq = 23"),
            [("body_hash", 23), ("checkpoint_root", 23)],
            id="a body emptied",
        ),
        pytest.param(
            run("DELETE FROM events"),
            [("opening_unreadable", 1), ("seq_gap", 1)],
            id="emptied",
        ),
    ],
)
def test_each_way_of_tampering_has_its_findings(
    change: Change, expected: list[tuple[str, int | None]], doctored: Doctored
) -> None:
    found = audit(doctored(change))
    assert codes(found) == expected
    assert found.fails


def test_a_rewritten_first_event_leaves_nothing_to_verify_with(doctored: Doctored) -> None:
    found = audit(doctored(run("UPDATE events SET body = x'00' WHERE seq = 1")))
    assert ("opening_unreadable", 1) in codes(found)
    assert found.checkpoints_valid == 0


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TRIGGER events_no_update", "trigger events_no_update is missing"),
        ("ALTER TABLE events ADD COLUMN more TEXT", "table events is not what"),
        ("CREATE TABLE more(x)", "table more does not belong"),
        ("CREATE VIEW more AS SELECT 1", "view more does not belong"),
        ("DROP INDEX events_once", "index events_once is missing"),
        ("DROP TABLE checkpoints", "table checkpoints is missing"),
        ("PRAGMA user_version = 0", "layout version is 0"),
    ],
)
def test_a_changed_schema_is_a_finding_and_the_rest_is_still_read(
    statement: str, words: str, whole: Path
) -> None:
    connection = sqlite3.connect(whole)
    connection.execute(statement)
    connection.close()
    found = audit(whole)
    assert codes(found)[0] == ("schema_changed", None)
    assert words in found.findings[0].explain
    assert found.events == 23


@shows("L3")
def test_a_newer_layout_is_read_as_far_as_it_goes(whole: Path) -> None:
    connection = sqlite3.connect(whole)
    connection.execute("ALTER TABLE events ADD COLUMN more TEXT")
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    found = audit(whole)
    assert codes(found) == []
    assert codes(found, "warning")[0] == ("newer_layout", None)
    assert "version 2, and this Thermite knows version 1" in found.findings[0].explain


@shows("L3")
def test_a_newer_event_is_hashed_and_named(whole: Path, rig_key: SigningKey, clock: Clock) -> None:
    connection = sqlite3.connect(whole, isolation_level=None)
    connection.execute("DROP TRIGGER events_no_delete")
    connection.execute("DROP TRIGGER checkpoints_no_delete")
    connection.execute("DELETE FROM events WHERE seq > 21")
    connection.execute("DELETE FROM checkpoints WHERE size > 21")
    connection.close()
    from thermite.ledger.tables import SCHEMA

    connection = sqlite3.connect(whole, isolation_level=None)
    connection.execute(SCHEMA["trigger", "events_no_delete"])
    connection.execute(SCHEMA["trigger", "checkpoints_no_delete"])
    connection.close()
    append_unknown(whole, rig_key, clock)
    found = audit(whole)
    assert codes(found) == []
    assert codes(found, "warning")[:2] == [("unknown_type", 22), ("history_unread", 22)]
    assert found.unread == {"verdict@2": 1}


def test_an_impossible_history_is_found_although_all_of_it_is_signed(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    ledger.append([facts.probe()])
    ledger.append([event for event in facts.campaign() if event.data != facts.verdict().data])
    ledger.append([facts.steered()])
    ledger.close()
    found = audit(path)
    assert {code for code, _ in codes(found)} == {"illegal_transition"}
    texts = [one.explain for one in found.findings if one.code == "illegal_transition"]
    assert texts[0].startswith("event 17 can't follow the events before it: ")
    assert texts[-1].endswith(f"assignment {'a5' * 16} has ended")


def test_a_tail_without_checkpoints_may_not_be_long(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    ledger.append([facts.probe() for _ in range(2100)])
    ledger.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER checkpoints_no_delete")
    connection.execute("DELETE FROM checkpoints WHERE size IN (1001, 2101)")
    connection.close()
    found = audit(path)
    assert ("checkpoint_gap", 2001) in codes(found)
    assert ("unsigned_tail", 2001) in codes(found, "warning")
    assert ("stale_head", 2001) not in codes(found)


def test_a_tail_without_checkpoints_may_not_be_old(
    ledger: Ledger, facts: Facts, path: Path, clock: Clock
) -> None:
    clock.turn(3600)
    ledger.append([facts.probe()])
    ledger.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("DROP TRIGGER checkpoints_no_delete")
    connection.execute("DELETE FROM checkpoints WHERE size = 2")
    connection.close()
    found = audit(path)
    assert ("stale_head", 1) in codes(found)
    assert "3600 s after" in next(f.explain for f in found.findings if f.code == "stale_head")


@shows("L6")
def test_a_clock_that_was_set_is_shown_as_such(
    ledger: Ledger, facts: Facts, path: Path, clock: Clock
) -> None:
    ledger.append([facts.probe()])
    clock.turn(-7 * 3600)
    ledger.append([facts.probe()])
    ledger.append([facts.event(facts.probe().data, boot="b1" * 16, assignment=None)])
    ledger.close()
    found = audit(path)
    assert [(step.seq, round(step.seconds)) for step in found.clock_steps] == [(3, -25200)]
    assert codes(found) == []


def test_an_empty_name_of_a_boot_hides_neither_times_nor_a_clock_that_was_set(
    path: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    def nameless(event: Event) -> Event:
        return msgspec.structs.replace(event, boot="")

    with Ledger.create(path, nameless(facts.opened()), rig_key, now=clock) as ledger:
        clock.turn(-7 * 3600)
        ledger.append([nameless(facts.probe())])
    found = audit(path)
    assert (found.first_at, found.last_at) == (
        "2026-01-31T12:00:00.000000Z",
        "2026-01-31T05:00:00.000000Z",
    )
    assert [step.seq for step in found.clock_steps] == [2]


def test_a_running_assignment_keeps_its_coin(ledger: Ledger, facts: Facts, path: Path) -> None:
    ledger.append(facts.campaign()[:12])
    ledger.close()
    coins = audit(path).open_coins
    assert [(coin.assignment, coin.attempts) for coin in coins] == [("a5" * 16, 1)]


def test_the_proof_of_an_event_leads_to_the_signed_root(whole: Path) -> None:
    for seq in (1, 2, 17, 23):
        proof = prove(whole, seq)
        hashes = [strict_base64.decode(text) for text in proof.inclusion]
        leaf = strict_base64.decode(proof.leaf)
        note = read_note(proof.checkpoint)
        assert proof.size == note.size >= seq
        assert root_of_inclusion(leaf, seq - 1, note.size, hashes) == note.root
    for seq in (0, -1, 24):
        with pytest.raises(LedgerError, match=f"the ledger has no event {seq}"):
            prove(whole, seq)


def test_there_is_no_proof_from_a_changed_ledger(doctored: Doctored) -> None:
    changed = doctored(EDIT)
    with pytest.raises(LedgerError, match="no valid checkpoint covers event 2"):
        prove(changed, 2)


def test_a_thief_of_the_rigs_key_leaves_no_trace_in_the_file(
    doctored: Doctored, rig_key: SigningKey
) -> None:
    changed = doctored(then(EDIT, rechain, lambda connection: resign(connection, rig_key)))
    assert codes(audit(changed)) == []


def test_one_changed_event_is_named_first_and_the_rest_as_its_consequences(
    doctored: Doctored, whole: Path
) -> None:
    found = audit(doctored(EDIT))
    first, *rest = [one for one in found.findings if one.severity == "finding"]
    assert (first.code, first.seq, first.follows) == ("body_hash", 17, None)
    assert {one.follows for one in rest} == {"body_hash at event 17"}
    with opened(whole) as connection:
        held = connection.execute("SELECT hash FROM events WHERE seq = 17").fetchone()[0]
    assert first.expected == held.hex()
    assert first.got not in {None, held.hex()}
    assert rest[-1].explain.endswith(
        "the newest valid checkpoint is at event 1: 3 later ones do not hold"
    )


def test_checkpoints_that_were_removed_follow_from_no_edit(doctored: Doctored) -> None:
    found = audit(doctored(UNSIGN))
    (stale,) = [one for one in found.findings if one.severity == "finding"]
    assert stale.follows is None
    assert stale.explain.endswith("later ones were removed")
