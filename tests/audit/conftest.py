"""A ledger with a whole campaign in it, and ways to do to it what a stranger would."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.ledger.conftest import clock, facts, ledger, path, rig_key
from tests.ledger.facts import Facts
from thermite.ledger.append import Ledger
from thermite.ledger.tables import SCHEMA

__all__ = ["clock", "facts", "ledger", "path", "rig_key"]

Change: TypeAlias = Callable[[sqlite3.Connection], Any]


@pytest.fixture
def whole(ledger: Ledger, facts: Facts, path: Path) -> Path:
    """A closed ledger of 23 events: notes at 1, 21, 22 and 23."""
    ledger.append([facts.probe()])
    ledger.append(facts.campaign())
    ledger.append([facts.refused()])
    ledger.append([facts.probe()])
    ledger.close()
    return path


@pytest.fixture
def doctored(whole: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Copy the ledger, drop the triggers, change it, put the triggers back."""

    def make(change: Change) -> Path:
        copy = tmp_path / "copy" / "ledger.db"
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(whole, copy)
        connection = sqlite3.connect(copy, isolation_level=None)
        connection.execute("PRAGMA synchronous=OFF")
        triggers = [(name, text) for (kind, name), text in SCHEMA.items() if kind == "trigger"]
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        change(connection)
        for _, text in triggers:
            connection.execute(text)
        connection.close()
        return copy

    return make
