"""Events to fill a ledger with, all of them complete, and none of them random."""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from thermite.command.signing_key import SigningKey
from thermite.schema.contract import RepoAt
from thermite.schema.event import (
    ENVELOPES,
    TAG_OF,
    AgentFinished,
    AssignmentCreated,
    AssignmentEnded,
    AttemptEnded,
    AttemptStarted,
    Block,
    BudgetSpent,
    Build,
    CandidateSubmitted,
    ChampionPromoted,
    CommandAccepted,
    CommandRefused,
    Decision,
    Event,
    IsolationProbe,
    JudgeStarted,
    LaneOpened,
    LedgerOpened,
    LocalJob,
    McpServers,
    Steered,
    ToolCalled,
    Verdict,
)
from thermite.schema.strict import Strict
from thermite.schema.verdict import Arm

LEDGER = "0f" * 16
ASSIGNMENT = "a5" * 16
COMMIT = "c0" * 20
BASE = "d0" * 20


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
                previous=BASE,
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

    def refused(self, code: str = "wrong_rig") -> Event:
        return self.event(
            CommandRefused(sha256="0e" * 32, size=512, name="late.cmd.json", code=code),
            assignment=None,
        )

    def probe(self) -> Event:
        return self.event(
            IsolationProbe(level="none", features=[], gaps=["no root"], canaries={}),
            assignment=None,
        )

    def created(self) -> Event:
        contract = msgspec.json.encode(
            {
                "schema_version": 1,
                "name": "matmul",
                "campaign": "hill_climb",
                "task": "make it faster",
                "project": {"repo": "matmul", "commit": BASE},
                "cells": ["n256"],
                "objective": {"primary": {"metric": "rate"}},
            }
        )
        return self.event(
            AssignmentCreated(
                contract=msgspec.Raw(contract),
                contract_sha256=hashlib.sha256(contract).hexdigest(),
                kit=RepoAt(repo="kit", commit=COMMIT),
                project=RepoAt(repo="matmul", commit=BASE),
                order_commitment="3c" * 32,
            )
        )

    def decision(self, stage: Literal["screen", "confirm"]) -> Event:
        return self.event(
            Decision(
                attempt=1,
                tries=1,
                stage=stage,
                n=10,
                lnE=9.5,
                lnE_futility=-7.25,
                T=0.27,
                se=0.01,
                lcb=0.25,
                ucb=0.29,
                guards={},
                rule="signflip-1",
                action="pass",
            ),
            actor="judge",
        )

    def campaign(self) -> list[Event]:
        """A whole assignment with one promotion, as the state machine allows it."""
        return [
            self.accepted(type="assign_campaign"),
            self.created(),
            self.event(McpServers(servers=[])),
            self.event(
                LaneOpened(lane=0, backend="replay", options={}, model=None, strategy="rules")
            ),
            self.event(
                AttemptStarted(
                    attempt=1, base=BASE, proposal="01-tiles", brief_sha256=None, limits={}
                ),
                lane=0,
            ),
            self.event(
                AgentFinished(
                    attempt=1, status="ok", stop_reason=None, turns=None, transcript=None
                ),
                lane=0,
            ),
            self.event(
                CandidateSubmitted(attempt=1, commit=COMMIT, tree="7e" * 20, paths=["matmul.c"]),
                lane=0,
            ),
            self.build("champion"),
            self.build("candidate"),
            self.judge_started(),
            self.block(0),
            self.decision("screen"),
            self.block(1, d=0.26),
            self.decision("confirm"),
            self.verdict(),
            self.promoted(),
            self.event(AttemptEnded(attempt=1, result="promoted"), lane=0),
            self.event(BudgetSpent(attempt=1, agent=None, amounts={"attempts": 1, "judge_s": 2.5})),
            self.ended(),
        ]

    def build(self, arm: Arm) -> Event:
        return self.event(
            Build(
                attempt=1,
                tries=1,
                arm=arm,
                key="8b" * 32,
                tree="7e" * 20,
                outputs_digest="9d" * 32,
                outcome="ok",
                reason=None,
                seconds=0.5,
                cached=False,
            ),
            actor="judge",
        )

    def judge_started(self) -> Event:
        return self.event(
            JudgeStarted(
                attempt=1,
                tries=1,
                k=1,
                alpha_k=0.003,
                candidate=COMMIT,
                champion=BASE,
                contract_sha256="00" * 32,
                kit_commit=COMMIT,
                rule="signflip-1",
                params={"min_effect": 0.03, "cells": ["n256"]},
                isolation="none",
                agents_during_timing="none",
            ),
            actor="judge",
        )

    def tool(self) -> Event:
        """A quiet event that belongs to no assignment."""
        data = ToolCalled(
            kind="workers", server="docs", tool="search", ms=12, outcome="ok", bytes=2048
        )
        return self.event(data, assignment=None)
