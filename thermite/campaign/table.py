"""The state machine, as one table: which event may follow in which state.

The harness asks before it appends, an auditor asks again while it reads: an event that the
table does not allow is refused there and a finding `illegal_transition` here. `problem`
returns why in words, or None.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from thermite.campaign.fold import RETURNED
from thermite.campaign.goal import standings
from thermite.campaign.review import REVIEW, questions
from thermite.campaign.state import Assignment, Attempt, AttemptStatus, State
from thermite.schema import event as e
from thermite.schema.verdict import VerdictKind

# event -> states of its attempt in which it may happen
ATTEMPT: Final[Mapping[type, frozenset[AttemptStatus]]] = {
    e.AgentFinished: frozenset({"working"}),
    e.CandidateSubmitted: frozenset({"working", "finished"}),
    e.CandidateRefused: frozenset({"working", "finished"}),
    e.Build: frozenset({"submitted", "building", "judging", "judged"}),
    e.JudgeStarted: frozenset({"building"}),
    e.Run: frozenset({"building", "judging"}),
    e.Check: frozenset({"building", "judging"}),
    e.Block: frozenset({"judging"}),
    e.Decision: frozenset({"judging"}),
    e.Verdict: frozenset({"submitted", "building", "judging", "judged", "held"}),
    e.GoalChecked: frozenset({"building", "judging"}),
    e.Hold: frozenset({"submitted", "building", "judging"}),
    e.HoldResolved: frozenset({"held"}),
    e.ReviewVote: frozenset({"held"}),
    e.ReviewResult: frozenset({"held"}),
    e.ChampionPromoted: frozenset({"judged"}),
    e.AttemptEnded: frozenset({"finished", "judged", "promoted"}),
}

NEEDS_NO_CANDIDATE_RUN: Final[frozenset[VerdictKind]] = frozenset(
    {"invalid", "crash_candidate", "crash_infra", "noisy_rig", "duplicate", "cancelled"}
)
"""Verdicts that can be reached before screening begins; `not_better` too, by equal bytes."""

CREATING: Final = frozenset({e.AssignmentCreated, e.LocalJob})
"""Events by which an assignment comes to be."""

AFTER_THE_END: Final = frozenset({e.CommandAccepted, *CREATING})
"""Events that name an assignment and may stand before it exists, or after its end."""


OF_AN_ASSIGNMENT: Final = frozenset(
    {
        *ATTEMPT,
        e.AttemptStarted,
        e.LaneOpened,
        e.McpServers,
        e.AssignmentPaused,
        e.AssignmentResumed,
        e.AssignmentEnded,
        e.BudgetSpent,
        e.Steered,
    }
)
"""Events that mean nothing without the assignment that they are about."""


def problem(state: State, event: e.Event) -> str | None:
    """Return why this event can't follow, or None if it can."""
    kind = type(event.data)
    if kind is e.LedgerOpened or state.seq == 0:
        return _opening_problem(state, event.data)
    if kind in CREATING:
        return _creation_problem(state, event)
    if kind in AFTER_THE_END:
        return None
    if event.assignment is None:
        return f"{e.TAG_OF[kind]} without an assignment" if kind in OF_AN_ASSIGNMENT else None
    return _about_assignment(state, event, event.assignment)


def _about_assignment(state: State, event: e.Event, about: str) -> str | None:
    assignment = state.assignments.get(about)
    if assignment is None:
        return f"assignment {about} was never created"
    if assignment.status == "ended":
        return f"assignment {about} has ended"
    return _in_assignment(assignment, event)


def _opening_problem(state: State, data: object) -> str | None:
    if not isinstance(data, e.LedgerOpened):
        return "a ledger begins with ledger_opened"
    return None if state.seq == 0 else "a ledger is opened by its first event only"


def _creation_problem(state: State, event: e.Event) -> str | None:
    if not event.assignment:
        return "an assignment is created under its id"
    if event.assignment in state.assignments:
        return f"assignment {event.assignment} exists already"
    return None


def _in_assignment(assignment: Assignment, event: e.Event) -> str | None:
    data = event.data
    if isinstance(data, e.AttemptStarted):
        return _start_problem(assignment, event)
    allowed = ATTEMPT.get(type(data))
    if allowed is None or getattr(data, "attempt", None) is None:
        own = _OWN.get(type(data))
        return own(assignment, data) if own is not None else None
    attempt = assignment.attempts.get(data.attempt)
    if attempt is None:
        return f"attempt {data.attempt} was never started"
    if attempt.status not in allowed:
        return f"{e.TAG_OF[type(data)]} of attempt {data.attempt}, which is {attempt.status}"
    rule = _RULES.get(type(data))
    return rule(assignment, attempt, data) if rule is not None else None


def _start_problem(assignment: Assignment, event: e.Event) -> str | None:
    data = event.data
    if event.lane is None or event.lane not in assignment.lanes:
        return f"lane {event.lane} was never opened"
    if assignment.open_attempt(event.lane) is not None:
        return f"lane {event.lane} has an attempt that has not ended"
    if data.attempt != len(assignment.attempts) + 1:
        return f"attempt {data.attempt} follows attempt {len(assignment.attempts)}"
    return None


def _lane_problem(assignment: Assignment, data: e.LaneOpened) -> str | None:
    return f"lane {data.lane} is open already" if data.lane in assignment.lanes else None


def _pause_problem(assignment: Assignment, _: e.AssignmentPaused) -> str | None:
    return "the assignment is paused already" if assignment.status == "paused" else None


def _resume_problem(assignment: Assignment, _: e.AssignmentResumed) -> str | None:
    return "the assignment is not paused" if assignment.status != "paused" else None


def _mcp_problem(assignment: Assignment, _: e.McpServers) -> str | None:
    return "the MCP servers stand already" if assignment.mcp_servers is not None else None


def _build_rule(assignment: Assignment, attempt: Attempt, data: e.Build) -> str | None:
    if attempt.status == "judged":
        verdict = attempt.verdict
        if verdict is None or verdict.verdict not in RETURNED or data.tries != verdict.tries + 1:
            return f"a build of attempt {data.attempt} after its verdict"
    elif data.tries != attempt.tries + _is_measured_anew(assignment, attempt, data):
        return f"try {data.tries} of attempt {data.attempt}, which is at try {attempt.tries}"
    return None


def _is_measured_anew(assignment: Assignment, attempt: Attempt, data: e.Build) -> bool:
    """Return whether this build begins a try against a champion that came meanwhile."""
    stale = any(
        isinstance(f, e.JudgeStarted) and f.champion != assignment.champion for f in attempt.facts
    )
    return stale and data.tries == attempt.tries + 1


def _judge_started_rule(
    assignment: Assignment, attempt: Attempt, data: e.JudgeStarted
) -> str | None:
    if data.k != assignment.used_k + 1:
        return f"index {data.k} of the error budget follows {assignment.used_k}"
    if data.candidate != attempt.commit:
        return f"attempt {data.attempt} submitted {attempt.commit}, not {data.candidate}"
    if data.champion != assignment.champion:
        return f"the champion is {assignment.champion}, not {data.champion}"
    return None


def _verdict_rule(assignment: Assignment, attempt: Attempt, data: e.Verdict) -> str | None:
    if attempt.commit is None:
        return f"a verdict on attempt {data.attempt}, which has no candidate"
    if attempt.status == "judged" and data.verdict not in ("crash_infra", "noisy_rig", "cancelled"):
        return f"a second verdict on attempt {data.attempt}"
    unearned = _unearned_problem(assignment, attempt, data)
    if unearned is not None:
        return unearned
    needs_no_run = (
        data.verdict in NEEDS_NO_CANDIDATE_RUN or assignment.contract.campaign == "research"
    )
    if attempt.status != "submitted" or needs_no_run:
        return None
    return f"{data.verdict} on attempt {data.attempt}, which was never built"


def _unearned_problem(assignment: Assignment, attempt: Attempt, data: e.Verdict) -> str | None:
    if data.verdict == "promoted" and not _confirmed(attempt):
        return f"attempt {data.attempt} is promoted, and no confirm stage passed"
    if data.verdict == "goals_met" and any(s.met != "met" for s in standings(assignment, attempt)):
        return f"attempt {data.attempt} is said to meet all goals, and it does not"
    return None


def _confirmed(attempt: Attempt) -> bool:
    last = next((f for f in reversed(attempt.facts) if isinstance(f, e.Decision)), None)
    passed = {"pass", "hold"} if attempt.released else {"pass"}
    return last is not None and last.stage == "confirm" and last.action in passed


def _promotion_rule(
    assignment: Assignment, attempt: Attempt, data: e.ChampionPromoted
) -> str | None:
    if attempt.verdict is None or attempt.verdict.verdict != "promoted":
        return f"attempt {data.attempt} has no verdict that promotes it"
    if data.commit != attempt.commit:
        return f"attempt {data.attempt} submitted {attempt.commit}, not {data.commit}"
    if data.previous != assignment.champion:
        return f"the champion is {assignment.champion}, not {data.previous}"
    return None


def _hold_rule(assignment: Assignment, attempt: Attempt, data: e.Hold) -> str | None:
    if data.reason == REVIEW and not questions(assignment):
        return f"attempt {data.attempt} is held for votes, and the contract asks for none"
    if data.reason != REVIEW and attempt.status != "judging":
        return f"hold of attempt {data.attempt}, which is {attempt.status}"
    return None


def _resolve_rule(_: Assignment, attempt: Attempt, data: e.HoldResolved) -> str | None:
    if attempt.hold == REVIEW:
        return f"attempt {data.attempt} waits for votes, and no hold ends that"
    return None


def _goal_rule(assignment: Assignment, attempt: Attempt, data: e.GoalChecked) -> str | None:
    known = {goal.id for goal in assignment.contract.goals} - questions(assignment).keys()
    if data.goal not in known:
        return f"the contract has no goal {data.goal!a} that a judge checks"
    if (data.goal, data.passed) in attempt.checked:
        return f"goal {data.goal} of attempt {data.attempt} is checked twice"
    return None


def _vote_rule(assignment: Assignment, attempt: Attempt, data: e.ReviewVote) -> str | None:
    undecided = _undecided_problem(assignment, attempt, data.attempt, data.goal)
    if undecided is None and data.voter in {v.voter for v in attempt.votes.get(data.goal, [])}:
        return f"{data.voter} votes twice on goal {data.goal} of attempt {data.attempt}"
    return undecided


def _result_rule(assignment: Assignment, attempt: Attempt, data: e.ReviewResult) -> str | None:
    undecided = _undecided_problem(assignment, attempt, data.attempt, data.goal)
    votes = [vote.vote == "met" for vote in attempt.votes.get(data.goal, [])]
    if undecided is None and votes.count(data.met) < questions(assignment)[data.goal].quorum:
        return f"goal {data.goal} of attempt {data.attempt} has no quorum"
    return undecided


def _undecided_problem(
    assignment: Assignment, attempt: Attempt, number: int, goal: str
) -> str | None:
    if attempt.hold != REVIEW:
        return f"attempt {number} waits for no vote"
    if goal not in questions(assignment):
        return f"the contract has no goal {goal!a} to vote on"
    if goal in attempt.reviewed:
        return f"goal {goal} of attempt {number} is decided already"
    return None


_OWN: Final[Mapping[type, Callable[[Assignment, Any], str | None]]] = {
    e.LaneOpened: _lane_problem,
    e.AssignmentPaused: _pause_problem,
    e.AssignmentResumed: _resume_problem,
    e.McpServers: _mcp_problem,
}

_RULES: Final[Mapping[type, Callable[[Assignment, Attempt, Any], str | None]]] = {
    e.Build: _build_rule,
    e.JudgeStarted: _judge_started_rule,
    e.Verdict: _verdict_rule,
    e.ChampionPromoted: _promotion_rule,
    e.GoalChecked: _goal_rule,
    e.Hold: _hold_rule,
    e.HoldResolved: _resolve_rule,
    e.ReviewVote: _vote_rule,
    e.ReviewResult: _result_rule,
}
