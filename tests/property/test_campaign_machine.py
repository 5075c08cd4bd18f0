"""A campaign under random orders, kills, broken runs and restarts is one legal history.

Hypothesis gives a campaign on the scripted rig life after life: each may be killed at an append,
before or after it is durable, have runs that fail, are disturbed or break the rig, and
orders in the middle. After every life the ledger must be a history that the table of states
allows and from which judging again finds no difference; the last life comes to an end.
"""

import os
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.harness.ordered import Rig
from tests.simulated_campaign import ASSIGNMENT, Home, Life
from thermite.audit.rejudge import rejudged
from thermite.campaign.fold import fold
from thermite.campaign.hill_climb import RE_ANCHOR_EVERY
from thermite.campaign.state import Assignment, State
from thermite.campaign.table import problem
from thermite.errors import CommandError, LedgerError
from thermite.harness.book import Draft
from thermite.ledger.replay import recorded
from thermite.schema import event as e

MEMORY: Final = "/dev/shm"
OFFERS: Final[list[dict[str, Any]]] = [
    {"ms": 40},
    {"ms": 25},
    {"ms": 60},
    {"ms": 2},
    {"ms": {"128": 25, "192": 2}},
    {"ms": 25, "exit": 3},
    {"ms": 25, "check": {"line": {"pass": False, "reasons": ["no"]}}},
    {"build": {"exit": 1}},
]
"""Null, faster, slower, beyond belief as a whole and in one cell (held), a crash, a wrong result,
a build that fails."""
ORDERS: Final[dict[str, dict[str, Any]]] = {
    "steer_campaign": {"text": "try tiling", "lane": None},
    "extend_budget": {"budget": {"attempts": 60}},
    "resolve_hold": {"attempt": 1, "action": "release"},
    "stop_campaign": {"now": True},
}
TROUBLE: Final = {"breaks": None, "steals": {"steal_ticks": 9}, "sleeps": {"suspended_ns": 10**9}}


class CampaignMachine(RuleBasedStateMachine):
    """One campaign's lives."""

    def __init__(self) -> None:
        super().__init__()
        place = MEMORY if os.access(MEMORY, os.W_OK) else None
        self.kept = tempfile.TemporaryDirectory(dir=place, prefix="thermite-test-")
        self.home: Home | None = None
        self.over = False
        self.lives = 0

    @initialize(
        offers=st.lists(st.sampled_from(OFFERS), min_size=1, max_size=3),
        retries=st.sampled_from([0, 1]),
    )
    def begin(self, offers: list[dict[str, Any]], retries: int) -> None:
        """A campaign with some proposals, each told from the others by a comment."""
        told = {f"{n}-offer": {**offer, "comment": n} for n, offer in enumerate(offers)}
        judging = {"infra_retries": retries, "hold_timeout_s": 1}
        contract = {"judging": judging, "budget": {"attempts": 50}}
        self.home = Home(Path(self.kept.name), {"ms": 40}, told, contract)

    @rule(
        die_at=st.integers(1, 60),
        after_commit=st.booleans(),
        trouble=st.dictionaries(st.integers(18, 80), st.sampled_from(list(TROUBLE)), max_size=3),
        order=st.sampled_from([None, *ORDERS]),
        at=st.integers(1, 40),
    )
    def live(
        self,
        die_at: int,
        after_commit: bool,
        trouble: dict[int, str],
        order: str | None,
        at: int,
    ) -> None:
        """One life, cut short or not, with an order in it or none."""
        self.run(trouble, order, at, die_at=die_at, after_commit=after_commit)

    def run(
        self,
        trouble: dict[int, str],
        order: str | None,
        at: int,
        *,
        die_at: int | None = None,
        after_commit: bool = False,
    ) -> None:
        """Live once, and look at what the ledger holds."""
        assert self.home is not None
        self.lives += 1
        rig = Rig(self.home)
        life = rig.life
        life.stages.seed = self.lives
        life.stages.break_at = {run for run, kind in trouble.items() if kind == "breaks"}
        life.stages.disturb = {r: TROUBLE[k] or {} for r, k in trouble.items() if k != "breaks"}
        if order is not None:
            self.orders(rig, order, at)
        if (
            life.assignment.status == "ended"
        ):  # it ended before, or died with its last event durable
            life.ledger.close()
            self.over = True
        else:
            self.over = life.run(die_at=die_at, after_commit=after_commit)
        self.look(life)

    def orders(self, rig: Rig, order: str, at: int) -> None:
        """Give an order once, at an append; one that does not fit is refused."""
        given: list[bool] = []

        def give(drafts: list[Draft]) -> None:
            del drafts
            if given or rig.life.book.appends < at:
                return
            given.append(True)
            # It may fit nothing by now, or the kill strikes inside it.
            with suppress(CommandError, LedgerError):
                rig.order(order, **ORDERS[order])

        rig.life.book.committed = give  # type: ignore[assignment]

    def look(self, life: Life) -> None:
        """The history is legal, and all that was decided follows from it."""
        told = [(row.seq, row.event) for row in recorded(life.home.rig.ledger)]
        state = State()
        for seq, event in told:
            assert problem(state, event) is None, (seq, event)
            fold(state, seq, event)
        assert rejudged(told).differences == []
        self.sums(state.assignments[ASSIGNMENT], [event.data for _, event in told])

    @staticmethod
    def sums(found: Assignment, told: list[Any]) -> None:
        """Every k once, every attempt ended once, the champion by its promotions alone."""
        ks = [data.k for data in told if isinstance(data, e.JudgeStarted)]
        assert ks == list(range(1, len(ks) + 1))
        ended = Counter(data.attempt for data in told if isinstance(data, e.AttemptEnded))
        assert max(ended.values(), default=1) == 1
        champions = [data.commit for data in told if isinstance(data, e.ChampionPromoted)]
        assert found.champion == (champions[-1] if champions else found.project.commit)
        blocks = Counter(
            (data.attempt, data.tries, data.stage, data.block)
            for data in told
            if isinstance(data, e.Block)
        )
        assert max(blocks.values(), default=1) == 1
        assert len(found.re_anchors) <= 1 + len(champions) // RE_ANCHOR_EVERY + 1
        if found.status == "ended":
            assert all(attempt.status == "ended" for attempt in found.attempts.values())
            assert sum(isinstance(data, e.AssignmentEnded) for data in told) == 1

    def teardown(self) -> None:
        """The campaign comes to its end when nobody disturbs it any more."""
        try:
            if self.home is not None and not self.over:
                self.run({}, None, 0)
                assert self.over
        finally:
            self.kept.cleanup()


TestCampaignMachine = CampaignMachine.TestCase
TestCampaignMachine.settings = settings(
    max_examples=6, stateful_step_count=4, deadline=None, suppress_health_check=list(HealthCheck)
)
