"""state, event -> state: what each event changes, one small function per event.

`fold` changes the state that it is given and returns it: a replay owns its state, and a
million copies of it would buy nothing. It reads nothing but the event.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from thermite.campaign.state import Assignment, Attempt, ReAnchor, Seen, State
from thermite.errors import LedgerError
from thermite.schema import event as e
from thermite.schema.command import ExtendBody, StopBody, TrustedKey
from thermite.schema.contract import Contract, Project
from thermite.schema.verdict import ANSWERS_A_DUPLICATE

RETURNED: Final = frozenset({"crash_infra", "noisy_rig"})
"""Verdicts after which the judge may take the same attempt again."""
GOAL_STAGES: Final = frozenset({"visible", "hidden"})
"""Stages of a goal campaign: its judging begins with its first run."""
LOCKING: Final = frozenset({"ledger_rolled_back", "ledger_forked"})
"""Refusals after which a rig takes no assignment until `accept-loss` (ledger and signing, 3.9)."""


def fold(state: State, seq: int, event: e.Event) -> State:
    """Return the state after one event more.

    Raises:
        LedgerError: the event has no meaning after those before it, as no harness writes one;
            the state is of no use then.
    """
    state.seq = seq
    change = _CHANGES.get(type(event.data))
    if change is not None:
        try:
            change(state, event, event.data)
        except (LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
            raise LedgerError(
                f"event {seq} ({e.TAG_OF[type(event.data)]}) has no meaning after the events"
                f" before it ({type(error).__name__}): the ledger was changed; run thermite audit"
            ) from error
    state.last_event = event.id
    if event.assignment is not None:
        assignment = state.assignments.get(event.assignment)
        if assignment is not None:
            assignment.last_event = event.id
    return state


def replay(events: Iterable[tuple[int, e.Event]]) -> State:
    """Return the state that events from event 1 on mean."""
    state = State()
    for seq, event in events:
        fold(state, seq, event)
    return state


def _of(state: State, event: e.Event) -> Assignment:
    return state.assignments[event.assignment or ""]


def _attempt(state: State, event: e.Event) -> Attempt:
    return _of(state, event).attempts[event.data.attempt]


def _ledger_opened(state: State, _: e.Event, data: e.LedgerOpened) -> None:
    state.opened = data


def _trust_set(state: State, _: e.Event, data: e.TrustSet) -> None:
    state.trust, state.trust_version = list(data.keys), data.version


def _trust_reset(state: State, _: e.Event, data: e.TrustReset) -> None:
    state.trust, state.trust_version, state.trust_was_reset = list(data.keys), data.version, True


def _key_revoked(state: State, _: e.Event, data: e.KeyRevoked) -> None:
    state.trust = [_revoked(key, data) for key in state.trust]


def _revoked(key: TrustedKey, data: e.KeyRevoked) -> TrustedKey:
    return msgspec.structs.replace(key, revoked_since=data.since) if key.id == data.key else key


def _command_accepted(state: State, event: e.Event, data: e.CommandAccepted) -> None:
    seen = Seen(state.seq, data.id, data.issuer, data.type, data.sha256, event.assignment)
    state.commands[data.sha256] = seen
    state.command_ids[data.issuer, data.id] = data.sha256
    if data.body is None:
        return
    if data.type == "stop_campaign":
        stop = msgspec.convert(data.body, type=StopBody)
        _of(state, event).stop_wanted = "now" if stop.now else "after"
    elif data.type == "extend_budget":
        _extend(_of(state, event), msgspec.convert(data.body, type=ExtendBody))


def _extend(assignment: Assignment, body: ExtendBody) -> None:
    limits: dict[str, Any] = dict(body.budget)
    for name in ("attempts", "tokens", "candidate_mib"):
        if name in limits:
            limits[name] = int(limits[name])
    budget = msgspec.structs.replace(assignment.contract.budget, **limits)
    assignment.contract = msgspec.structs.replace(assignment.contract, budget=budget)


def _command_refused(state: State, _: e.Event, data: e.CommandRefused) -> None:
    state.refused += 1
    if data.code in LOCKING:
        state.ledger_locked = True


def _ledger_gap(state: State, _: e.Event, __: e.LedgerGap) -> None:
    state.ledger_locked = False


def _import_completed(state: State, _: e.Event, data: e.ImportCompleted) -> None:
    name, thing = data.repo or "", data.commit or data.model or ""
    state.imported.add((data.kind, name, thing))


def _assignment_created(state: State, event: e.Event, data: e.AssignmentCreated) -> None:
    assignment = event.assignment or ""
    state.assignments[assignment] = Assignment(
        id=assignment,
        created_seq=state.seq,
        command=event.command,
        contract=msgspec.json.decode(data.contract, type=Contract),
        contract_sha256=data.contract_sha256,
        kit=data.kit,
        project=data.project,
        champion=data.project.commit,
        goals=data.goals,
    )


def _local_job(state: State, event: e.Event, data: e.LocalJob) -> None:
    """`thermite judge`: its rule's parameters stand in `judge_started`, the rest is default."""
    assignment = event.assignment or ""
    start = data.champion or data.project
    contract = Contract(
        schema_version=1,
        name="local",
        campaign="hill_climb",
        task="judge here and now",
        project=Project(repo=start.repo, commit=start.commit, kit=data.kit),
        cells=data.cells,
    )
    state.assignments[assignment] = Assignment(
        id=assignment,
        created_seq=state.seq,
        command=None,
        contract=contract,
        contract_sha256="",
        kit=data.kit,
        project=start,
        champion=start.commit,
        used_k=state.local_k,
        selftested=True,
        nonce=data.nonce,
    )


def _mcp_servers(state: State, event: e.Event, data: e.McpServers) -> None:
    assignment = _of(state, event)
    assignment.mcp_servers, assignment.mcp_providers = data.servers, data.providers


def _paused(state: State, event: e.Event, _: e.AssignmentPaused) -> None:
    _of(state, event).status = "paused"


def _resumed(state: State, event: e.Event, _: e.AssignmentResumed) -> None:
    _of(state, event).status = "running"


def _ended(state: State, event: e.Event, data: e.AssignmentEnded) -> None:
    assignment = _of(state, event)
    assignment.status, assignment.end_reason = "ended", data.reason
    assignment.gain, assignment.interval = data.gain, data.interval


def _lane_opened(state: State, event: e.Event, data: e.LaneOpened) -> None:
    _of(state, event).lanes[data.lane] = data


def _attempt_started(state: State, event: e.Event, data: e.AttemptStarted) -> None:
    assignment = _of(state, event)
    attempt = Attempt(started=data, lane=event.lane or 0)
    # Anew and not grown: lanes, watch and reports go through it without the book's lock.
    assignment.attempts = {**assignment.attempts, data.attempt: attempt}


def _agent_finished(state: State, event: e.Event, _: e.AgentFinished) -> None:
    _attempt(state, event).status = "finished"


def _candidate_submitted(state: State, event: e.Event, data: e.CandidateSubmitted) -> None:
    attempt = _attempt(state, event)
    attempt.status, attempt.tries = "submitted", 1
    attempt.commit, attempt.tree, attempt.paths = data.commit, data.tree, data.paths


def _candidate_refused(state: State, event: e.Event, data: e.CandidateRefused) -> None:
    attempt = _attempt(state, event)
    attempt.status, attempt.refused = "judged", data.in_words()


def _attempt_ended(state: State, event: e.Event, data: e.AttemptEnded) -> None:
    attempt = _attempt(state, event)
    attempt.status, attempt.result, attempt.facts = "ended", data.result, []


def _budget_spent(state: State, event: e.Event, data: e.BudgetSpent) -> None:
    assignment = _of(state, event)
    for name, amount in data.amounts.items():
        assignment.spent[name] = assignment.spent.get(name, 0.0) + amount
    attempt = assignment.attempts.get(data.attempt or 0)
    if attempt is not None:
        attempt.spendings += 1


def _build(state: State, event: e.Event, data: e.Build) -> None:
    if data.attempt is None:
        return
    attempt = _attempt(state, event)
    if data.tries != attempt.tries:
        attempt.facts, attempt.checked = [], {}
    attempt.status, attempt.tries = "building", data.tries
    if data.arm == "candidate" and data.outcome == "ok":
        attempt.outputs = data.outputs_digest


def _judge_started(state: State, event: e.Event, data: e.JudgeStarted) -> None:
    attempt = _attempt(state, event)
    attempt.status = "judging"
    attempt.facts.append(data)
    assignment = _of(state, event)
    assignment.used_k = data.k
    if assignment.nonce is not None:
        state.local_k = data.k


def _fact(state: State, event: e.Event, data: e.Run | e.Check | e.Block | e.Decision) -> None:
    if data.attempt is None:
        _re_anchor_fact(_of(state, event), data)
        return
    assignment, attempt = _of(state, event), _attempt(state, event)
    attempt.facts.append(data)
    if isinstance(data, e.Run) and data.stage in GOAL_STAGES:
        attempt.status = "judging"
    if isinstance(data, e.Run) and data.outcome != "ok":
        attempt.held_out_failed = data.cell in assignment.contract.held_out_cells
    if isinstance(data, e.Block) and data.dropped == "interrupted":
        attempt.interrupted += 1


def _goal_checked(state: State, event: e.Event, data: e.GoalChecked) -> None:
    attempt = _attempt(state, event)
    attempt.status = "judging"
    attempt.facts.append(data)
    attempt.checked[data.goal, data.passed] = data


def _re_anchor_fact(assignment: Assignment, data: e.Run | e.Check | e.Block | e.Decision) -> None:
    if data.stage != "re_anchor":
        return
    known = assignment.re_anchors
    if not known or known[-1].number != data.tries:
        known.append(ReAnchor(number=data.tries, promotions=len(assignment.promotions)))
    known[-1].facts.append(data)
    if isinstance(data, e.Decision) and data.action == "stop":
        known[-1].decision = data


def _verdict(state: State, event: e.Event, data: e.Verdict) -> None:
    assignment, attempt = _of(state, event), _attempt(state, event)
    attempt.verdict, attempt.facts, attempt.status = data, [], "judged"
    attempt.infra_returns += data.verdict == "crash_infra"
    attempt.noisy_returns += data.verdict == "noisy_rig"
    if data.verdict in RETURNED:
        attempt.tries, attempt.checked = data.tries + 1, {}
    if data.verdict in ANSWERS_A_DUPLICATE:
        for content in (attempt.tree, attempt.outputs):
            if content is not None:
                assignment.answered.setdefault(content, data.attempt)


def _champion_promoted(state: State, event: e.Event, data: e.ChampionPromoted) -> None:
    assignment = _of(state, event)
    assignment.champion = data.commit
    assignment.promotions.append(data)
    _attempt(state, event).status = "promoted"


def _hold(state: State, event: e.Event, data: e.Hold) -> None:
    attempt = _attempt(state, event)
    attempt.status, attempt.hold, attempt.held_at = "held", data.reason, event.at
    attempt.hold_reasons = data.reasons


def _hold_resolved(state: State, event: e.Event, data: e.HoldResolved) -> None:
    attempt = _attempt(state, event)
    attempt.released, attempt.rejected = data.action == "release", data.action == "reject"
    attempt.status = "judging"


def _review_vote(state: State, event: e.Event, data: e.ReviewVote) -> None:
    _attempt(state, event).votes.setdefault(data.goal, []).append(data)


def _review_result(state: State, event: e.Event, data: e.ReviewResult) -> None:
    _attempt(state, event).reviewed[data.goal] = data.met


def _steered(state: State, event: e.Event, data: e.Steered) -> None:
    _of(state, event).steers.append((data.lane, data.text))


def _isolation_probe(state: State, _: e.Event, data: e.IsolationProbe) -> None:
    state.isolation = data


def _rig_selftest(state: State, event: e.Event, data: e.RigSelftest) -> None:
    state.selftest = data
    if data.mode == "full":
        state.full_selftest, state.full_selftest_boot = data, event.boot
    if event.assignment is not None:
        _of(state, event).selftested = True


_CHANGES: Final[dict[type, Callable[[State, e.Event, Any], None]]] = {
    e.LedgerOpened: _ledger_opened,
    e.TrustSet: _trust_set,
    e.TrustReset: _trust_reset,
    e.KeyRevoked: _key_revoked,
    e.CommandAccepted: _command_accepted,
    e.CommandRefused: _command_refused,
    e.LedgerGap: _ledger_gap,
    e.ImportCompleted: _import_completed,
    e.AssignmentCreated: _assignment_created,
    e.LocalJob: _local_job,
    e.McpServers: _mcp_servers,
    e.AssignmentPaused: _paused,
    e.AssignmentResumed: _resumed,
    e.AssignmentEnded: _ended,
    e.LaneOpened: _lane_opened,
    e.AttemptStarted: _attempt_started,
    e.AgentFinished: _agent_finished,
    e.CandidateSubmitted: _candidate_submitted,
    e.CandidateRefused: _candidate_refused,
    e.AttemptEnded: _attempt_ended,
    e.BudgetSpent: _budget_spent,
    e.Build: _build,
    e.JudgeStarted: _judge_started,
    e.Run: _fact,
    e.Check: _fact,
    e.Block: _fact,
    e.Decision: _fact,
    e.GoalChecked: _goal_checked,
    e.Verdict: _verdict,
    e.ChampionPromoted: _champion_promoted,
    e.Hold: _hold,
    e.HoldResolved: _hold_resolved,
    e.ReviewVote: _review_vote,
    e.ReviewResult: _review_result,
    e.Steered: _steered,
    e.IsolationProbe: _isolation_probe,
    e.RigSelftest: _rig_selftest,
}
