"""How far an audit reads: over every page, not without end, and it tells where it is."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.audit.conftest import Change
from tests.audit.test_verify import codes, run
from tests.ledger.facts import Facts
from thermite.audit.findings import Findings
from thermite.audit.notes import Ground, NotesCheck
from thermite.audit.verify import audit
from thermite.ledger.append import Ledger
from thermite.ledger.merkle import Tree
from thermite.ledger.reading import opened
from thermite.ledger.replay import PAGE_ROWS

Doctored = Callable[[Change], Path]


@pytest.mark.parametrize("first", [PAGE_ROWS - 1, PAGE_ROWS, PAGE_ROWS + 1])
def test_a_change_is_found_at_its_event_on_either_side_of_a_page(
    ledger: Ledger, facts: Facts, path: Path, first: int
) -> None:
    ledger.append([facts.probe() for _ in range(2 * PAGE_ROWS)])
    ledger.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TRIGGER events_no_update")
        connection.execute(
            "UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE seq = ?", (first,)
        )
        connection.execute("UPDATE events SET type = 'run' WHERE seq = ?", (first + 1,))
        connection.commit()
    found = [one for one in codes(audit(path)) if one[0] in {"body_hash", "column_mismatch"}]
    assert found == [("body_hash", first), ("column_mismatch", first + 1)]


def test_checkpoints_that_do_not_hold_are_not_read_without_end(whole: Path) -> None:
    """A foreign one takes 40 us: a file of millions would take minutes."""
    with opened(whole) as connection:
        notes = connection.execute("SELECT size, note FROM checkpoints ORDER BY size").fetchall()
    ground = Ground("thermite/another/ledger", (), Tree(), {}, whole=True)
    findings = Findings()
    check = NotesCheck(ground, findings, most_bad=3)
    assert [check.take(size, note) for size, note in notes[:3]] == [True, True, False]
    check.finish(0, None)
    assert [one.code for one in findings.listed] == [
        *(["checkpoint_signature"] * 3),
        "checkpoints_unread",
    ]
    assert findings.listed[-1].explain == (
        "3 checkpoints up to event 22 do not hold, and no later one was read"
    )


def test_an_audit_ends_with_the_last_checkpoint_that_it_read(doctored: Doctored) -> None:
    many = doctored(
        run(
            "WITH RECURSIVE n(x) AS (SELECT 100 UNION ALL SELECT x + 1 FROM n LIMIT 10500)"
            " INSERT INTO checkpoints SELECT x, x'00' FROM n"
        )
    )
    found = audit(many)
    assert ("checkpoints_unread", 10_099) in codes(found)
    assert (found.checkpoints, found.checkpoints_valid) == (10_004, 4)


def test_an_audit_tells_how_far_it_is(whole: Path) -> None:
    told: list[str] = []
    audit(whole, tell=told.append)
    assert told == [
        "SQLite checks its pages",
        "event 23 of 23",
        *(f"checkpoint of event {size}" for size in (1, 21, 22, 23)),
    ]
