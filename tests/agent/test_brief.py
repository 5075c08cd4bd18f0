"""What a worker reads of its lane's past, and what it must never read."""

import msgspec
import pytest

from tests.campaign.events import A, build, created, lane, opened, started, submitted
from tests.campaign.test_hill_climb import START, judge_started, state_of, verdict
from tests.requirement import shows
from thermite.agent.brief import brief
from thermite.schema import event as e
from thermite.schema.strict import Strict

CANARY = "CANARY-of-a-held-out-cell"


def failed_run(cell: str) -> e.Run:
    return e.Run(
        attempt=1,
        tries=1,
        stage="confirm",
        block=0,
        cell=cell,
        arm="candidate",
        position=0,
        record=None,
        flags=[],
        isolation=None,
        outcome="run_exited",
        reason=CANARY,
    )


def told(last: e.Verdict, *facts: Strict) -> str:
    first: list[Strict] = [opened(), created(held_out_cells=["held"]), lane(), started(1)]
    rest = [submitted(1), build(1), judge_started(1, 1), *facts, last]
    ended = e.AttemptEnded(attempt=1, result=last.verdict)
    return brief(state_of([*first, *rest, ended]).assignments[A], 0)


def with_reason(kind: str, reason: str) -> e.Verdict:
    return msgspec.structs.replace(verdict(1, kind), reasons=[reason])


@pytest.mark.parametrize("kind", ["overfit", "not_confirmed"])
def test_a_verdict_that_rests_on_held_out_cells_is_told_in_one_sentence(kind: str) -> None:
    page = told(with_reason(kind, CANARY))
    assert f"a held-out case failed ({kind})" in page
    assert CANARY not in page


def test_a_run_that_failed_on_a_held_out_cell_tells_nothing_of_it() -> None:
    page = told(with_reason("crash_candidate", CANARY), failed_run("held"))
    assert "a held-out case failed (crash_candidate)" in page
    assert CANARY not in page
    assert "held\n" not in page


def test_a_run_that_failed_on_a_visible_cell_tells_why() -> None:
    page = told(with_reason("crash_candidate", "exit 3: boom"), failed_run("small"))
    assert "exit 3: boom" in page


def test_a_reason_is_cut_fenced_and_free_of_escape_sequences() -> None:
    page = told(with_reason("invalid", "\x1b[31m" + "x" * 3000))
    assert "\x1b" not in page
    assert page.count("x") < 1300
    assert "…" in page


@shows("K-163", "D31")
@pytest.mark.parametrize("size", [1200, 1201, 4000])
def test_a_brief_keeps_1200_characters_of_a_verdicts_reasons(size: int) -> None:
    """A quarter of the head and three quarters of the tail, however it was cut before."""
    reasons = "a" * 300 + "b" * (size - 1200) + "c" * 900
    page = told(with_reason("invalid", reasons))
    kept = reasons if size == 1200 else "a" * 300 + "…" + "c" * 900
    assert f"\n    {kept}\n" in page


def test_gains_are_rounded_so_that_they_teach_little() -> None:
    page = told(msgspec.structs.replace(verdict(1, "promoted"), gain=0.123456))
    assert "gain 12.3 %" in page


def test_a_first_brief_has_the_task_and_what_may_be_changed() -> None:
    page = brief(state_of(START[:3]).assignments[A], 0)
    assert "make it fast" in page
    assert "`**`" in page
    assert "last attempts" not in page
