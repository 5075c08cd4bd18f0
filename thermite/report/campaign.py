"""One campaign as rows and words: each attempt, its verdict, its reason, its gain."""

from typing import Any, Final

import msgspec

from thermite.campaign import hill_climb, limits, review
from thermite.campaign.state import Assignment, Attempt, State
from thermite.report import goal
from thermite.schema.event import Block, Interval
from thermite.schema.judging import drops_in_words
from thermite.schema.strict import Strict

IN_WORDS: Final[dict[str, str]] = {
    "promoted": "faster, confirmed on fresh blocks and held-out cells: the new champion",
    "not_better": "no gain worth a promotion was shown",
    "regressed": "slower than the champion",
    "not_confirmed": "looked better, and fresh blocks did not confirm it",
    "overfit": "better on what the agents saw, worse on what they did not",
    "guard_failed": "better, at the price of something that must not get worse",
    "constraint_failed": "breaks a hard bound",
    "invalid": "wrong, or could not be built",
    "crash_candidate": "crashed, or went over a limit",
    "crash_infra": "the rig or the kit failed: never the candidate's fault",
    "noisy_rig": "the rig was disturbed too often to say",
    "duplicate": "the same content was judged before",
    "suspect": "a person rejected it",
    "cancelled": "the campaign was stopped",
    "valid": "kept: nothing had to be measured",
    "goals_met": "meets every goal of the contract",
    "goals_unmet": "leaves goals unmet",
    "held": "waits for a person",
    "refused": "no candidate was made of it",
    "no_change": "nothing was changed",
    "working": "its worker has not finished",
    "judging": "the judge has not finished",
    "killed": "cut off by the rig; offered again if the campaign goes on",
}
SHOWN_REASON: Final = 160
"""Characters of a reason in a table row (our figure; `--json` has it whole)."""


class Row(Strict):
    """One attempt: name is its proposal, or its number; gain and interval are fractions.

    goals: the weight that it meets in a campaign with goals, in words.
    """

    attempt: int
    name: str
    verdict: str
    words: str
    reasons: list[str]
    gain: float | None
    interval: Interval | None
    marks: list[str]
    goals: str = ""


def rows(assignment: Assignment) -> list[Row]:
    """Return one row for each attempt, in order."""
    return [
        msgspec.structs.replace(row(number, attempt), goals=goal.weight(assignment, number))
        for number, attempt in assignment.attempts.items()
    ]


def row(number: int, attempt: Attempt) -> Row:
    """Return the row of one attempt."""
    verdict = attempt.verdict
    kind = attempt.result or attempt.status
    return Row(
        attempt=number,
        name=attempt.started.proposal or f"attempt {number}",
        verdict=kind,
        words=IN_WORDS.get(kind, kind),
        reasons=_reasons(attempt),
        gain=verdict.gain if verdict is not None else None,
        interval=verdict.interval if verdict is not None else None,
        marks=list(verdict.marks) if verdict is not None else [],
    )


def _reasons(attempt: Attempt) -> list[str]:
    """Return why the attempt ended as it did, or what a person is asked to look at."""
    found = attempt.hold_reasons
    if attempt.status == "held":
        return [] if attempt.hold == review.REVIEW else [f"held for {attempt.hold}", *found]
    if attempt.verdict is None:
        return [attempt.refused] if attempt.refused else []
    by_hand = ["a person released it"] if attempt.released else []
    return [*by_hand, *attempt.verdict.reasons]


def percent(fraction: float | None) -> str:
    """Return a fraction as per cent with its sign, or a dash."""
    return "–" if fraction is None else f"{100 * fraction:+.1f} %"


def span(interval: Interval | None) -> str:
    """Return an interval as per cent, e.g. `[+41.0 %, +44.2 %]`, or nothing."""
    if interval is None or interval == (None, None):
        return ""
    low, high = interval
    return f"[{percent(low)}, {percent(high)}]"


def one_line(text: str) -> str:
    """Return a text whole and on one line: a campaign's end may quote what a compiler said."""
    return " ".join(text.split())


def short(reasons: list[str]) -> str:
    """Return the reasons on one line, shortened for a table."""
    text = one_line("; ".join(reasons))
    return text if len(text) <= SHOWN_REASON else f"{text[: SHOWN_REASON - 1]}…"


def headline(assignment: Assignment) -> str:
    """Return what the campaign came to, in one sentence."""
    if assignment.contract.goals:
        return goal.headline(assignment)
    count = len(assignment.promotions)
    start, champion = assignment.project.commit[:12], assignment.champion[:12]
    if count == 0:
        return f"no candidate was promoted; the champion is still {start}"
    gain = assignment.gain
    told = f"{count} promotion{'s' if count > 1 else ''}; champion {champion}"
    if gain is None:
        return f"{told}; its gain over {start} was not measured again{_cut_short(assignment)}"
    return f"{told}; measured again {percent(gain)} {span(assignment.interval)} over {start}"


def _cut_short(assignment: Assignment) -> str:
    """Return why the last measurement of the champion came to no figure, where blocks tell."""
    last = assignment.re_anchors[-1] if assignment.re_anchors else None
    if last is None or last.decision is not None:
        return ""
    blocks = [fact for fact in last.facts if isinstance(fact, Block)]
    return f": {drops_in_words(blocks)}" if any(block.drops for block in blocks) else ""


def isolation_sentence(state: State) -> str:
    """Return in words what kept candidates apart on this rig (isolation, 4.2)."""
    probe = state.isolation
    if probe is None:
        return "isolation: not probed"
    if probe.level == "namespaces":
        return (
            "isolation: namespaces – the candidate ran as the judge's own user, in namespaces"
            " without kit, ledger and keys"
        )
    if probe.level != "none":
        return f"isolation: {probe.level} – stages ran as users of their own"
    if any(f.startswith("landlock") for f in probe.features):
        return (
            "isolation: none + landlock – the candidate ran as the judge's own user, and"
            " Landlock kept it from kit, ledger and keys"
        )
    return "isolation: none – the candidate ran as the judge's own user and could read the kit"


def no_held_out_warning(assignment: Assignment) -> str | None:
    """Return the warning that a contract without held-out cells earns, or None."""
    if assignment.contract.held_out_cells:
        return None
    return "no held-out cells: this gain is only shown on what the agents saw"


def verdict_counts(assignment: Assignment) -> dict[str, int]:
    """Return how many attempts ended with each result."""
    counts: dict[str, int] = {}
    for attempt in assignment.attempts.values():
        if attempt.result is not None:
            counts[attempt.result] = counts.get(attempt.result, 0) + 1
    return counts


def progress(assignment: Assignment) -> str:
    """Return where a running campaign stands, in one line, with what waits for a person."""
    held = hill_climb.open_holds(assignment)
    waits = f"; held for thermite campaign resolve: attempt {', '.join(map(str, held))}"
    return _now(assignment) + (waits if held else "")


def _now(assignment: Assignment) -> str:
    running = [a for a in assignment.attempts.values() if a.status not in ("ended", "held")]
    is_climb = assignment.contract.campaign == "hill_climb"
    if is_climb and not assignment.selftested and not assignment.attempts:
        return "measuring the start against itself: how much do this rig's runs spread?"
    asked = review.waiting(assignment)
    if not running and asked and assignment.status != "ended":
        return f"waiting for votes: attempt {', '.join(map(str, asked))}"
    if not running and hill_climb.open_holds(assignment) and assignment.status == "running":
        most_s = assignment.contract.judging.hold_timeout_s
        return f"waiting for a person, for {_span_of_time(most_s)} from the hold on"
    if not running:
        anchor = hill_climb.re_anchor_due(assignment, ending=True)
        if anchor is not None and assignment.re_anchors:
            return "measuring the champion against the start once more"
        return f"{assignment.status}; {limits.counted_attempts(assignment)} attempts"
    attempt = running[-1]
    name = attempt.started.proposal or str(attempt.started.attempt)
    return f"attempt {attempt.started.attempt} ({name}): {attempt.status}"


def _span_of_time(seconds: float) -> str:
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def status(
    state: State,
    *,
    wal_bytes: int,
    served: bool | None,
    as_of: str | None,
    outbox: str | None = None,
    log: str | None = None,
) -> dict[str, object]:
    """Return the rig and its campaigns as plain values.

    Args:
        wal_bytes: size of the ledger's write-ahead log, bytes.
        served: whether a rig writes to the ledger now; None: not known, as of a copy.
        as_of: the time of the newest event.
        outbox: why senders may wait for receipts in vain, or None.
        log: why the write-ahead log is large, or None.
    """
    opened, probe, selftest = state.opened, state.isolation, state.selftest
    return {
        "rig": opened.rig if opened is not None else None,
        "ledger": opened.ledger if opened is not None else None,
        "target": opened.target if opened is not None else None,
        "events": state.seq,
        "as_of": as_of,
        "served": served,
        "wal_bytes": wal_bytes,
        "log": log,
        "outbox": outbox,
        "isolation": probe.level if probe is not None else None,
        "isolation_in_words": isolation_sentence(state),
        "gaps": list(probe.gaps) if probe is not None else [],
        "grade": selftest.grade if selftest is not None else None,
        "sees": state.sees,
        "unfit": state.unfit,
        "trusted_keys": [key.id for key in state.trust if key.revoked_since is None],
        "refused_commands": state.refused,
        "assignments": [
            _assignment_status(a, is_cut_off=served is False) for a in state.assignments.values()
        ],
    }


def _assignment_status(assignment: Assignment, *, is_cut_off: bool) -> dict[str, object]:
    status, now = assignment.status, progress(assignment)
    if is_cut_off and status == "running":
        now = f"interrupted at: {now}"
    return {
        "id": assignment.id,
        "name": assignment.contract.name,
        "kind": assignment.contract.campaign,
        "status": "interrupted" if is_cut_off and status == "running" else status,
        "reason": assignment.end_reason,
        "now": now,
        "attempts": limits.counted_attempts(assignment),
        "budget": assignment.contract.budget.attempts,
        "verdicts": verdict_counts(assignment),
        "champion": assignment.champion,
        "gain": assignment.gain,
        "interval": assignment.interval,
        "goals": goal.report(assignment),
    }


def _sight(told: dict[str, object]) -> str:
    """Return what the rig sees, and why it takes no assignment, as far as it is known."""
    sees, unfit = told["sees"], told["unfit"]
    seen = f", sees ≥ {100 * sees:.1f} %" if isinstance(sees, float) else ""
    return f"{seen}, {unfit}: it takes no assignment" if unfit else seen


_SERVED: Final[dict[object, str]] = {
    True: ", and the rig is served",
    False: ": no rig is served from this ledger now",
    None: "",
}


def status_lines(told: dict[str, object]) -> list[str]:
    """Return a status for a person, one line each."""
    given = told["assignments"]
    assignments = given if isinstance(given, list) else []
    is_cut_off = any(one["status"] == "interrupted" for one in assignments)
    goes_on = "; a campaign goes on when one is" if is_cut_off else ""
    rig = f"rig {told['rig']}  target {told['target']}  events {told['events']}"
    return [
        f"{rig}  write-ahead log {told['wal_bytes']} bytes",
        f"as of {told['as_of']}{_SERVED[told['served']]}{goes_on}",
        *(f"{what}: {told[what]}" for what in ("log", "outbox") if told[what]),
        str(told["isolation_in_words"]),
        f"selftest: {told['grade'] or 'not run yet'}{_sight(told)}",
        *(line for one in assignments for line in _assignment_lines(one)),
    ]


def _assignment_lines(one: dict[str, Any]) -> list[str]:
    counts = ", ".join(f"{n} {kind}" for kind, n in one["verdicts"].items())
    below = [one_line(one["reason"] or one["now"]), *_goal_lines(one["goals"])]
    tried = f"{one['attempts']} of {one['budget']} attempts"
    head = f"{one['id'][:12]}  {one['name']} ({one['kind']})  {one['status']}  {tried}"
    return [
        f"{head}  {counts or 'no verdict yet'}",
        *(f"              {line}" for line in below),
    ]


def _goal_lines(told: dict[str, Any] | None) -> list[str]:
    if told is None:
        return []
    if told["attempt"] is None:
        return ["no candidate has been verified yet"]
    weights = f"weight {told['weight']:g} of {told['of_weight']:g}"
    return [f"attempt {told['attempt']} meets {told['met']} of {told['of']} goals, {weights}"]
