"""What a person wants to see of an event as it happens, in one line; None: nothing. PURE."""

import math
from collections.abc import Callable
from typing import Any, Final

from thermite.campaign.review import REVIEW
from thermite.campaign.state import State
from thermite.report.campaign import IN_WORDS, one_line, percent, short, span
from thermite.schema import event as e


def line(state: State, event: e.Event) -> str | None:
    """Return an event for a person, or None when it is a detail."""
    tell = _TOLD.get(type(event.data))
    return None if tell is None else tell(state, event, event.data)


def is_over(event: e.Event, until: str | None) -> bool:
    """Return whether this event is the one that was waited for."""
    wanted = {"promoted": e.ChampionPromoted, "ended": e.AssignmentEnded}.get(until or "")
    return wanted is not None and isinstance(event.data, wanted)


def begins(event: e.Event) -> bool:
    """Return whether a campaign begins with this event."""
    return isinstance(event.data, e.AssignmentCreated)


def _name(state: State, event: e.Event, number: int | None) -> str:
    assignment = state.assignments.get(event.assignment or "")
    if assignment is None or number is None or number not in assignment.attempts:
        return "champion" if number is None else f"attempt {number}"
    return assignment.attempts[number].started.proposal or f"attempt {number}"


def _opened(_: State, __: e.Event, data: e.LedgerOpened) -> str:
    return f"ledger {data.ledger} of rig {data.rig} opened, target {data.target}"


def _isolation(_: State, __: e.Event, data: e.IsolationProbe) -> str:
    gaps = f", gaps: {', '.join(data.gaps)}" if data.gaps else ""
    passed = "".join(f"; {level} can't be had: {why}" for level, why in data.passed_over.items())
    return f"isolation {data.level} ({', '.join(data.features)}{gaps}){passed}"


def _accepted(_: State, __: e.Event, data: e.CommandAccepted) -> str:
    return f"{data.type} accepted, signed by {data.issuer[:12]}"


def _refused(_: State, __: e.Event, data: e.CommandRefused) -> str:
    return f"a command was refused: {data.code} ({data.name})"


def _created(_: State, event: e.Event, data: e.AssignmentCreated) -> str:
    kit = data.kit.repo if data.kit is not None else "no kit"
    return f"assignment {event.assignment} created: {data.project.repo} with {kit}"


def _selftest(_: State, __: e.Event, data: e.RigSelftest) -> str:
    spread = data.figures.get("robust_sd")
    told = "" if spread is None else f", spread of equal arms {100 * spread:.2f} %"
    return f"selftest: this rig is {data.grade}{told}"


def _started(state: State, event: e.Event, data: e.AttemptStarted) -> str:
    return f"{_name(state, event, data.attempt)}: attempt {data.attempt} on {data.base[:12]}"


def _candidate_refused(state: State, event: e.Event, data: e.CandidateRefused) -> str:
    return f"{_name(state, event, data.attempt)}: refused, {data.in_words()}"


def _decision(state: State, event: e.Event, data: e.Decision) -> str | None:
    if data.action == "continue":
        return None
    words = f"{data.stage} {data.action} after {data.n} blocks"
    told = f"ln E {data.lnE:.1f}, {percent(math.expm1(data.T))}"
    return f"{_name(state, event, data.attempt)}: {words} ({told})"


def _measured(gain: float, interval: e.Interval | None) -> str:
    return f"{percent(gain)} {span(interval)}".rstrip()


def _verdict(state: State, event: e.Event, data: e.Verdict) -> str:
    gain = f" {_measured(data.gain, data.interval)}" if data.gain is not None else ""
    why = short(data.reasons) or IN_WORDS.get(data.verdict, "")
    return f"{_name(state, event, data.attempt)}: {data.verdict}{gain}: {why}"


def _goal_checked(state: State, event: e.Event, data: e.GoalChecked) -> str:
    where = {"visible": "", "hidden": " on held-out cells"}[data.passed]
    why = "" if data.met else f": {short(data.reasons)}"
    met = "met" if data.met else "unmet"
    return f"{_name(state, event, data.attempt)}: goal {data.goal} {met}{where}{why}"


def _hold(state: State, event: e.Event, data: e.Hold) -> str:
    waits = "waits for votes" if data.reason == REVIEW else f"held for {data.reason}"
    why = f": {short(data.reasons)}" if data.reasons else ""
    return f"{_name(state, event, data.attempt)}: {waits}{why}"


def _hold_resolved(state: State, event: e.Event, data: e.HoldResolved) -> str:
    return f"{_name(state, event, data.attempt)}: {data.action} by {data.by[:12]}"


def _voted(state: State, event: e.Event, data: e.ReviewVote) -> str:
    why = f": {short([data.reason])}" if data.reason else ""
    voter = data.voter[:12]
    return f"{_name(state, event, data.attempt)}: {voter} votes {data.goal} {data.vote}{why}"


def _paused(_: State, __: e.Event, data: e.AssignmentPaused) -> str:
    return f"paused by {data.by[:12]}: no new attempt starts"


def _resumed(_: State, __: e.Event, data: e.AssignmentResumed) -> str:
    return f"resumed by {data.by[:12]}"


def _steered(_: State, __: e.Event, data: e.Steered) -> str:
    whom = "all lanes" if data.lane is None else f"lane {data.lane}"
    return f"note for {whom}: {short([data.text])}"


def _promoted(_: State, __: e.Event, data: e.ChampionPromoted) -> str:
    return f"champion is now {data.commit[:12]}, {_measured(data.gain, data.interval)}"


def _ended(_: State, __: e.Event, data: e.AssignmentEnded) -> str:
    measured = None if data.gain is None else _measured(data.gain, data.interval)
    gain = f": {measured} measured again" if measured else ""
    return f"campaign ended ({one_line(data.reason)}){gain}"


_TOLD: Final[dict[type, Callable[[State, e.Event, Any], str | None]]] = {
    e.LedgerOpened: _opened,
    e.IsolationProbe: _isolation,
    e.CommandAccepted: _accepted,
    e.CommandRefused: _refused,
    e.AssignmentCreated: _created,
    e.RigSelftest: _selftest,
    e.AttemptStarted: _started,
    e.CandidateRefused: _candidate_refused,
    e.Decision: _decision,
    e.Verdict: _verdict,
    e.GoalChecked: _goal_checked,
    e.Hold: _hold,
    e.HoldResolved: _hold_resolved,
    e.ReviewVote: _voted,
    e.AssignmentPaused: _paused,
    e.AssignmentResumed: _resumed,
    e.Steered: _steered,
    e.ChampionPromoted: _promoted,
    e.AssignmentEnded: _ended,
}
