"""People who order about a campaign that runs: at once decided as the door does."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.orders import Orders, trusted
from tests.simulated_campaign import ASSIGNMENT, Home, Life
from thermite.command.keyring import Keyring
from thermite.command.signing_key import SigningKey
from thermite.command.verify import open_command
from thermite.harness.book import Draft
from thermite.harness.decide import Accept, decide
from thermite.schema import event as e
from thermite.schema.strict import Strict

BASE = {"ms": 40}
THREE: dict[str, dict[str, Any]] = {"a": {"ms": 39}, "b": {"ms": 41}, "c": {"ms": 20}}
REVIEWED: dict[str, Any] = {
    "campaign": "research",
    "cells": [],
    "held_out_cells": [],
    "objective": None,
    "goals": [
        {
            "id": "clear",
            "title": "reads well",
            "verify": {"type": "review", "question": "is it clear?", "quorum": 2},
        }
    ],
}


class Rig:
    """A campaign and people who order about it; orders are decided as the door does."""

    def __init__(self, home: Home, voters: int = 1) -> None:
        self.home, self.life = home, Life(home)
        self.keys = [SigningKey.generate() for _ in range(voters)]

    def order(self, kind: str, *, by: int = 0, **body: object) -> None:
        book = self.life.book
        key = self.keys[by]
        orders = Orders(self.home.folder, key=key, rig_key=self.home.key)
        payload = orders.payload(
            kind, {"assignment": ASSIGNMENT, **body}, issuer=key.public.id, after=None
        )
        now = datetime.now(UTC)
        command = open_command(
            orders.sealed(payload, key),
            Keyring([trusted(one) for one in self.keys]),
            rig=self.home.key.public.id,
            ledger="1" * 32,
            now=now,
        )
        with book.lock:
            found = decide(command, book.state, now, size=0, root_at=lambda _: b"")
            assert isinstance(found, Accept)
            book.append(*found.drafts)

    def when(self, wanted: Callable[[Strict], bool], act: Callable[[], None]) -> None:
        """Act once, as soon as a payload like this is durable."""
        acted: list[bool] = []

        def look(drafts: Sequence[Draft]) -> None:
            if not acted and any(wanted(draft.data) for draft in drafts):
                acted.append(True)
                act()

        self.life.book.committed = look

    @property
    def results(self) -> list[str | None]:
        return [a.result for a in self.life.assignment.attempts.values()]

    def kinds(self) -> list[str]:
        return [a.verdict.verdict for a in self.life.assignment.attempts.values() if a.verdict]


def submitted(number: int) -> Callable[[Strict], bool]:
    return lambda data: isinstance(data, e.CandidateSubmitted) and data.attempt == number


def ended(number: int) -> Callable[[Strict], bool]:
    return lambda data: isinstance(data, e.AttemptEnded) and data.attempt == number
