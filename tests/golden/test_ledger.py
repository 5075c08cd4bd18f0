"""The golden ledger: bytes that every later version must read as this one wrote them."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.golden.make_ledger import KEY, make
from thermite.audit.verify import audit
from thermite.ledger.append import Ledger
from thermite.ledger.replay import recorded

GOLDEN = Path(__file__).parent / "ledger" / "ledger.db"
# Written down when it was made; a new value here is a change of the format.
HEAD = "KgZM3tnAlLnwM6fse8MV3zMPeWC/5A27x3Dgesnbwl4="
ROOT = "6jCYHUKAvjrA3sQx8yPIwx3m0+4qKDYyg9Cew4GlRBE="


def rows(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        return [
            *connection.execute("SELECT * FROM events ORDER BY seq"),
            *connection.execute("SELECT * FROM checkpoints ORDER BY size"),
            *connection.execute(
                "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
            ),
            *connection.execute("PRAGMA application_id"),
            *connection.execute("PRAGMA user_version"),
        ]


def test_its_generator_still_makes_the_same_rows(tmp_path: Path) -> None:
    assert rows(make(tmp_path)) == rows(GOLDEN)


def test_it_is_clean_and_says_what_it_said() -> None:
    found = audit(GOLDEN)
    assert not found.fails
    assert (found.events, found.checkpoints, found.checkpoints_valid) == (62, 4, 4)
    assert (found.head, found.root) == (HEAD, ROOT)


def test_its_events_are_still_known() -> None:
    assert sum(1 for _ in recorded(GOLDEN)) == 62


def test_it_can_be_gone_on_with(tmp_path: Path) -> None:
    copy = tmp_path / "ledger.db"
    shutil.copy(GOLDEN, copy)
    with Ledger.open(copy, KEY, now=lambda: "2026-02-01T00:00:00Z", witnessed=62) as ledger:
        assert ledger.size == 62
