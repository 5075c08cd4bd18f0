"""How long judging a ledger of 100,000 runs again takes, beside reading it alone.

The ledger is made first: campaigns of attempts on noise, most of them worth nothing, one in
ten worth 5 %, each run with its check, each block with its decision, as a rig writes them.
Then both sides are timed in turn on one processor: reading every event with its hash, and
judging again, which reads them too. What was decided then and now stands in one line each.

Asked: at most 5 s for 100,000 runs, and the same decisions. `rejudge.py [RUNS]`.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.append import now
from thermite import __version__
from thermite.audit.rejudge import rejudge
from thermite.command.signing_key import SigningKey
from thermite.judge.job.outcome import Identity
from thermite.judge.measure.block import measured, paired
from thermite.judge.simulate.attempt import Timed, parameters, speeds
from thermite.judge.simulate.edit import NULL, Machine, gain_of
from thermite.judge.simulate.noise import MODELS
from thermite.judge.verdict.coin import commitment
from thermite.judge.verdict.params import alpha_k
from thermite.judge.verdict.walk import walk
from thermite.judge.verdict.words import claim
from thermite.ledger.append import Ledger
from thermite.ledger.replay import recorded
from thermite.schema import event as e
from thermite.schema.contract import RepoAt
from thermite.schema.rule import MeasuredBlock
from thermite.schema.stage import IsolationRecord, ProofOfZero, RunRecord
from thermite.schema.strict import Strict
from thermite.schema.verdict import Arm, JudgeStage, VerdictKind

RUNS: Final = 100_000
ASKED_S: Final = 5.0
ROUNDS: Final = 3
ASSIGNMENT: Final = "ab" * 16
SEED: Final = b"\5" * 32
GAIN: Final = gain_of(0.05)
P: Final = parameters(0.03, cells=2)
ISOLATION: Final = IsolationRecord(
    level="users",
    features=["nnp", "seccomp", "landlock:7"],
    network="none",
    user="run-0",
    uid=58_001,
    gaps=[],
    proof=ProofOfZero(survivors=0, rounds=1, kill_ms=0.8, swept=0),
)


class Campaign:
    """Payloads of attempt after attempt, each list one transaction."""

    def __init__(self) -> None:
        self.champion, self.speed = "0" * 40, 0.0
        self.runs = 0

    def beginning(self) -> list[Strict]:
        """Return what a campaign begins with."""
        contract = {
            "schema_version": 1,
            "name": "bench",
            "campaign": "hill_climb",
            "task": "bench",
            "project": {
                "repo": "p",
                "commit": self.champion,
                "kit": {"repo": "k", "commit": self.champion},
            },
            "cells": P.cells,
            "objective": {"primary": {"metric": "seconds", "direction": "min"}},
        }
        at = RepoAt(repo="p", commit=self.champion)
        created = e.AssignmentCreated(
            contract=msgspec.Raw(json.dumps(contract).encode()),
            contract_sha256="c" * 64,
            kit=at,
            project=at,
            order_commitment=commitment(SEED).hex(),
        )
        lane = e.LaneOpened(lane=0, backend="replay", options={}, model=None, strategy="hill_climb")
        return [created, e.McpServers(servers=[]), lane]

    def attempt(self, number: int) -> Iterator[list[Strict]]:
        """Yield the transactions of one attempt."""
        commit = f"{number:040x}"
        edit = GAIN if number % 10 == 0 else NULL
        started = e.JudgeStarted(
            attempt=number,
            tries=1,
            k=number,
            alpha_k=alpha_k(P.judging, number),
            candidate=commit,
            champion=self.champion,
            contract_sha256="c" * 64,
            kit_commit=self.champion,
            rule=P.judging.rule,
            params=msgspec.to_builtins(P),
            isolation="users",
            agents_during_timing="frozen",
        )
        yield [
            e.AttemptStarted(
                attempt=number, base=self.champion, proposal=None, brief_sha256=None, limits={}
            ),
            e.CandidateSubmitted(attempt=number, commit=commit, tree=commit[::-1], paths=["a"]),
            *[build(number, arm) for arm in ("champion", "candidate")],
            started,
        ]
        arms = speeds(P, edit, self.speed)
        timed = Timed(P, SEED, number, arms, Machine(MODELS["quiet"], Random(number)))  # noqa: S311 - recorded noise, from a seed
        facts: list[e.Run | e.Check] = []

        def block(stage: JudgeStage, at: int) -> MeasuredBlock:
            facts[:] = [fact for run in timed.runs(stage, at) for fact in told(number, run)]
            return measured(stage, at, paired(facts), P.metrics)

        own = Identity(attempt=number, tries=1)
        for stage, made, ruling in walk(block, P, number, full=True):
            self.runs += len(paired(facts))
            decision = own.decided(stage, ruling)
            yield [*facts, own.counted(made, P), decision]
        yield self._ended(number, commit, decision)

    def _ended(self, number: int, commit: str, decision: e.Decision) -> list[Strict]:
        kind = decision.result if decision.action != "hold" else "not_confirmed"
        gain, interval = claim(decision)
        verdict = e.Verdict(
            attempt=number,
            tries=1,
            verdict=msgspec.convert(kind, VerdictKind),
            reasons=[],
            cells={},
            gain=gain,
            interval=interval,
            marks=[],
            notes=[],
        )
        ended = e.AttemptEnded(attempt=number, result=str(kind))
        if kind != "promoted":
            return [verdict, ended]
        promoted = e.ChampionPromoted(
            attempt=number,
            commit=commit,
            previous=self.champion,
            gain=gain,
            interval=interval,
            marks=[],
        )
        self.champion, self.speed = commit, self.speed + GAIN.gain
        return [verdict, promoted, ended]


def build(number: int, arm: Arm) -> e.Build:
    """Return an arm's build."""
    return e.Build(
        attempt=number,
        tries=1,
        arm=arm,
        key=f"{number:064x}",
        tree=f"{number:040x}",
        outputs_digest=f"{number:063x}{arm[1]}".replace("a", "1").replace("h", "2"),
        outcome="ok",
        reason=None,
        seconds=0.5,
        cached=False,
        isolation=ISOLATION,
    )


def told(number: int, timed: e.Run) -> list[e.Run | e.Check]:
    """Return a simulated run as a rig tells it, and its check."""
    t_ns = timed.record.t_ns if timed.record else 0
    record = RunRecord(
        t_ns=t_ns,
        utime_ns=t_ns - 900_000,
        stime_ns=800_000,
        nvcsw=2,
        nivcsw=1,
        minflt=311,
        majflt=0,
        maxrss_kib=4200,
        cpus=[1],
        started_at="2026-01-31T12:00:00.000000Z",
        suspended_ns=0,
        psi_cpu_us=12,
        steal_ticks=0,
    )
    run = replace(timed, attempt=number, record=record, isolation=ISOLATION)
    check = e.Check(
        attempt=number,
        tries=1,
        stage=run.stage,
        block=run.block,
        cell=run.cell,
        arm=run.arm,
        passed=True,
        fields={"error": "0.0001"},
        reasons=[],
    )
    return [run, check]


class Scribe:
    """Wraps payloads into events and appends them, many lists at a time."""

    def __init__(self, path: Path) -> None:
        key = SigningKey.generate()
        data = e.LedgerOpened(
            ledger="1" * 32,
            rig=key.public.id,
            rig_key=key.public.base64,
            versions={"thermite": __version__},
            target="cpu",
            image=None,
            machine={},
        )
        self._number = 0
        self._ledger = Ledger.create(path, self._event(data, None), key, now=now)

    def write(self, payloads: list[Strict]) -> None:
        """Append one list."""
        self._ledger.append([self._event(payload, ASSIGNMENT) for payload in payloads])

    def close(self) -> None:
        """Sign and close."""
        self._ledger.close()

    def _event(self, data: Strict, assignment: str | None) -> e.Event:
        self._number += 1
        return e.ENVELOPES[e.TAG_OF[type(data)]](
            id=f"{self._number:032x}",
            assignment=assignment,
            lane=0 if assignment else None,
            actor="judge",
            at="2026-01-31T12:00:00.000000Z",
            boot="b0b1c2d3" * 4,
            mono_ns=self._number,
            cause=None,
            command=None,
            data=data,
        )


def make(path: Path, runs: int) -> Counter[str]:
    """Write a ledger of at least so many runs; return its verdicts by kind."""
    campaign, scribe = Campaign(), Scribe(path)
    scribe.write(campaign.beginning())
    kinds: Counter[str] = Counter()
    number, waiting = 0, list[Strict]()
    while campaign.runs < runs:
        number += 1
        for payloads in campaign.attempt(number):
            waiting += payloads
            kinds.update(str(p.verdict) for p in payloads if isinstance(p, e.Verdict))
        if len(waiting) > 900:  # noqa: PLR2004 - below a group's 1,000 events
            scribe.write(waiting)
            waiting = []
    ended = e.AssignmentEnded(
        reason="bench", champion=campaign.champion, gain=None, interval=None, order_seed=SEED.hex()
    )
    scribe.write([*waiting, ended])
    scribe.close()
    return kinds


def main(argv: list[str]) -> int:
    """Make the ledger, time both sides, print them; 1 when something differs or is slow."""
    runs = int(argv[0]) if argv else RUNS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        kinds = make(path, runs)
        reading, judging = [], []
        for _ in range(ROUNDS):
            begun = time.process_time()
            events = sum(1 for _ in recorded(path))
            reading.append(time.process_time() - begun)
            begun = time.process_time()
            found = rejudge(path)
            judging.append(time.process_time() - begun)
    print(f"a ledger of {events:,} events: {found.runs:,} runs, {found.decisions:,} decisions")
    print(f"as decided then: {dict(kinds)}")
    print(f"judged again:    {found.verdicts:,} verdicts, {len(found.differences)} differences")
    each = min(judging) / found.runs * RUNS
    print(
        f"reading alone {min(reading):.2f} s, judging again {min(judging):.2f} s of one processor"
        f" (best of {ROUNDS}); {each:.2f} s for {RUNS:,} runs, asked <= {ASKED_S:g} s"
        f"{'' if each <= ASKED_S else '   MISSED'}"
    )
    for one in found.differences[:5]:
        print(f"  {one}")
    return int(bool(found.differences) or found.verdicts != kinds.total())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
