"""Events of a campaign, written by hand: one assignment, its lane, its attempts."""

import msgspec

from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.campaign.table import problem
from thermite.schema import event as e
from thermite.schema.contract import RepoAt
from thermite.schema.strict import Strict

A = "a" * 32
BASE, FAST, TREE = "0" * 40, "1" * 40, "2" * 40


def contract(**fields: object) -> msgspec.Raw:
    whole = {
        "schema_version": 1,
        "name": "walk",
        "campaign": "hill_climb",
        "task": "make it fast",
        "project": {"repo": "p", "commit": BASE, "kit": {"repo": "k", "commit": BASE}},
        "cells": ["small"],
        **fields,
    }
    return msgspec.Raw(msgspec.json.encode(whole))


def event(data: Strict, *, lane: int | None = 0, assignment: str | None = A) -> e.Event:
    return e.ENVELOPES[e.TAG_OF[type(data)]](
        id="f" * 32,
        assignment=assignment,
        lane=lane,
        actor="harness",
        at="2026-01-01T00:00:00.000000Z",
        boot="b",
        mono_ns=1,
        cause=None,
        command="d" * 64,
        data=data,
    )


def opened() -> e.LedgerOpened:
    return e.LedgerOpened(
        ledger="1" * 32, rig="2" * 32, rig_key="", versions={}, target="cpu", image=None, machine={}
    )


def created(**fields: object) -> e.AssignmentCreated:
    return e.AssignmentCreated(
        contract=contract(**fields),
        contract_sha256="c" * 64,
        kit=RepoAt(repo="k", commit=BASE),
        project=RepoAt(repo="p", commit=BASE),
        order_commitment="0" * 64,
    )


def lane() -> e.LaneOpened:
    return e.LaneOpened(lane=0, backend="replay", options={}, model=None, strategy="hill_climb")


def started(n: int) -> e.AttemptStarted:
    return e.AttemptStarted(attempt=n, base=BASE, proposal=f"p{n}", brief_sha256=None, limits={})


def submitted(n: int, commit: str = FAST, tree: str = TREE) -> e.CandidateSubmitted:
    return e.CandidateSubmitted(attempt=n, commit=commit, tree=tree, paths=["a.c"])


def build(n: int, tries: int = 1) -> e.Build:
    return e.Build(
        attempt=n,
        tries=tries,
        arm="candidate",
        key="k",
        tree=TREE,
        outputs_digest="e" * 64,
        outcome="ok",
        reason=None,
        seconds=0.1,
        cached=False,
    )


def checked(n: int, goal: str, which: str, *reasons: str) -> e.GoalChecked:
    fields = {"attempt": n, "tries": 1, "goal": goal, "pass": which}
    return msgspec.convert({**fields, "met": not reasons, "reasons": list(reasons)}, e.GoalChecked)


def verdict(n: int, kind: str, *reasons: str) -> e.Verdict:
    fields = {"attempt": n, "tries": 1, "verdict": kind, "reasons": list(reasons), "cells": {}}
    more: dict[str, object] = {"gain": None, "interval": None, "marks": [], "notes": []}
    return msgspec.convert(fields | more, e.Verdict)


def told(*payloads: Strict) -> State:
    """Return the state that follows, each event allowed by the table."""
    state = State()
    for seq, data in enumerate(payloads, 1):
        one = event(data)
        assert problem(state, one) is None, problem(state, one)
        fold(state, seq, one)
    return state
