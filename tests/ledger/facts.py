"""Events to fill a ledger with, all of them complete, and none of them random."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from thermite.command.signing_key import SigningKey
from thermite.schema.contract import RepoAt
from thermite.schema.event import (
    ENVELOPES,
    TAG_OF,
    AssignmentEnded,
    Block,
    ChampionPromoted,
    CommandAccepted,
    Event,
    LedgerOpened,
    LocalJob,
    Steered,
    Verdict,
)
from thermite.schema.strict import Strict

LEDGER = "0f" * 16
ASSIGNMENT = "a5" * 16
COMMIT = "c0" * 20


class Clock:
    """A clock that stands still until a test turns it."""

    def __init__(self) -> None:
        self.at = datetime(2026, 1, 31, 12, tzinfo=UTC)

    def __call__(self) -> str:
        return self.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def turn(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Facts:
    """Makes events as the harness would, with ids that count up."""

    def __init__(self, rig_key: SigningKey, clock: Clock) -> None:
        self._public, self._clock = rig_key.public, clock
        self._ids: Iterator[int] = iter(range(1, 10**9))

    def event(self, data: Strict, **changed: object) -> Event:
        number = next(self._ids)
        fields: dict[str, Any] = {
            "id": f"{number:032x}",
            "assignment": ASSIGNMENT,
            "lane": None,
            "actor": "harness",
            "at": self._clock(),
            "boot": "b0" * 16,
            "mono_ns": number * 1_000_000,
            "cause": None,
            "command": None,
        }
        return ENVELOPES[TAG_OF[type(data)]](**fields | changed, data=data)

    def opened(self, **changed: object) -> Event:
        fields: dict[str, Any] = {
            "ledger": LEDGER,
            "rig": self._public.id,
            "rig_key": self._public.base64,
            "versions": {"thermite": "0.1.0"},
            "target": "cpu",
            "image": None,
            "machine": {"cpus": 2},
        }
        return self.event(LedgerOpened(**fields | changed), assignment=None)

    def steered(self, text: str = "look at the inner loop", **changed: object) -> Event:
        return self.event(Steered(text=text, lane=None), **changed)

    def accepted(self, number: int = 1, **changed: object) -> Event:
        fields: dict[str, Any] = {
            "sha256": f"{number:064x}",
            "id": f"{number:032x}",
            "type": "steer_campaign",
            "issuer": "e1" * 16,
            "keys": ["e1" * 16],
            "body": None,
        }
        return self.event(CommandAccepted(**fields | changed))

    def block(self, number: int = 0, d: float = 0.25) -> Event:
        return self.event(
            Block(
                attempt=1, tries=1, stage="screen", block=number, d={"n256": d}, D=d, dropped=None
            ),
            actor="judge",
        )

    def verdict(self, attempt: int = 1, gain: float | None = 0.31, **changed: object) -> Event:
        fields: dict[str, Any] = {
            "attempt": attempt,
            "tries": 1,
            "verdict": "promoted",
            "reasons": [],
            "cells": {},
            "gain": gain,
            "interval": (0.28, 0.34),
            "marks": [],
            "notes": [],
        }
        return self.event(Verdict(**fields | changed), actor="judge")

    def promoted(self, attempt: int = 1) -> Event:
        return self.event(
            ChampionPromoted(
                attempt=attempt,
                commit=COMMIT,
                previous="d0" * 20,
                gain=0.31,
                interval=(0.28, 0.34),
                marks=[],
            )
        )

    def ended(self) -> Event:
        return self.event(
            AssignmentEnded(
                reason="budget: attempts",
                champion=COMMIT,
                gain=0.3,
                interval=(0.27, 0.33),
                order_seed="5e" * 32,
            )
        )

    def local_job(self) -> Event:
        kit = RepoAt(repo="kit", commit=COMMIT)
        return self.event(
            LocalJob(
                project=kit,
                kit=kit,
                champion=None,
                cells=["n256"],
                nonce="17" * 16,
                order_commitment="3c" * 32,
            )
        )
