"""What each command changes, as payloads of events; PURE but for the exceptions it raises.

`command_accepted` stands before these and is an effect of its own: the fold reads a stop and
a new budget from it. Source: the reference page "Contract", Commands; ledger and signing, 3.11.
"""

import math
from typing import assert_never

from thermite.campaign import review
from thermite.campaign.state import Assignment, Attempt, State
from thermite.command.instant import read_instant
from thermite.command.keyring import Keyring
from thermite.command.trust import trust_problems
from thermite.command.verify import SKEW, Command
from thermite.errors import CommandError
from thermite.schema.command import (
    MOST_NOTE,
    AboutAssignment,
    AssignBody,
    ExtendBody,
    NoBody,
    ResolveBody,
    RevokeBody,
    SteerBody,
    StopBody,
    SubmitBody,
    TrustBody,
    VoteBody,
)
from thermite.schema.contract import LIMITS, WHOLE_LIMITS
from thermite.schema.contract_rules import evidence_problems
from thermite.schema.event import (
    AssignmentPaused,
    AssignmentResumed,
    HoldResolved,
    KeyRevoked,
    Steered,
    TrustSet,
)
from thermite.schema.strict import Strict


def effects(  # noqa: C901, PLR0911 - one case for each kind of command
    command: Command, state: State
) -> list[Strict]:
    """Return the payloads that follow `command_accepted` (step 12 is checked on the way).

    Raises:
        CommandError: `malformed_body`, `not_found`, `wrong_state` and what trust adds.
    """
    body = command.body
    match body:
        case AboutAssignment():
            return _pause_or_resume(command, state, body.assignment)
        case StopBody():
            _check_stop(_running(state, body.assignment), body)
            return []
        case SteerBody():
            return _steer(state, body)
        case ResolveBody():
            return _resolve(command, state, body)
        case ExtendBody():
            _check_extension(_running(state, body.assignment), body)
            return []
        case TrustBody():
            return _update_trust(command, state, body)
        case RevokeBody():
            return _revoke(command, state, body)
        case NoBody():
            return []
        case AssignBody():
            raise RuntimeError("an assignment has its own way, with imports")
        case VoteBody():
            return _vote(command, state, body)
        case SubmitBody():
            raise CommandError(
                "not_supported",
                f"this version of the rig does not take {command.payload.type}: upgrade Thermite"
                " on the rig",
            )
        case _:
            assert_never(body)


def _running(state: State, assignment: str) -> Assignment:
    """Return an assignment that has not ended.

    Raises:
        CommandError: `not_found` or `wrong_state`.
    """
    found = state.assignments.get(assignment)
    if found is None:
        raise CommandError(
            "not_found",
            f"this rig has no assignment {assignment[:64]!a}: thermite campaign list shows those"
            " it has",
        )
    if found.status == "ended":
        raise CommandError(
            "wrong_state",
            f"assignment {assignment} has ended ({found.end_reason}): assign a new one",
        )
    return found


def _pause_or_resume(command: Command, state: State, assignment: str) -> list[Strict]:
    found = _running(state, assignment)
    wanted = "paused" if command.payload.type == "pause_campaign" else "running"
    if found.status == wanted:
        raise CommandError(
            "wrong_state", f"assignment {assignment} is {wanted} already: nothing to do"
        )
    by = command.payload.issuer
    return [AssignmentPaused(by=by) if wanted == "paused" else AssignmentResumed(by=by)]


def _check_stop(found: Assignment, body: StopBody) -> None:
    """Refuse a stop that changes nothing, or would make one that is under way a later one."""
    if found.stop_wanted == "now" or (found.stop_wanted == "after" and not body.now):
        when = "now" if found.stop_wanted == "now" else "after the running attempts"
        hurry = "" if found.stop_wanted == "now" else ", or stop it now"
        raise CommandError(
            "wrong_state", f"assignment {found.id} stops {when} already: wait for its end{hurry}"
        )


def _steer(state: State, body: SteerBody) -> list[Strict]:
    found = _running(state, body.assignment)
    if not body.text.strip():
        raise CommandError("malformed_body", "the note is empty: say what the workers should know")
    if len(body.text) > MOST_NOTE:
        raise CommandError(
            "malformed_body",
            f"the note has {len(body.text)} characters, and at most {MOST_NOTE} are passed on:"
            " shorten it",
        )
    lanes = found.contract.agents.workers.lanes
    if body.lane is not None and not 0 <= body.lane < lanes:
        raise CommandError(
            "not_found",
            f"assignment {body.assignment} has no lane {body.lane}: its lanes are 0 to {lanes - 1}",
        )
    return [Steered(text=body.text, lane=body.lane)]


def _resolve(command: Command, state: State, body: ResolveBody) -> list[Strict]:
    attempt = _running(state, body.assignment).attempts.get(body.attempt)
    if attempt is None:
        raise CommandError(
            "not_found", f"assignment {body.assignment} has no attempt {body.attempt}"
        )
    if attempt.status != "held":
        is_resolved = attempt.released or attempt.rejected
        done = f", {'released' if attempt.released else 'rejected'} already" if is_resolved else ""
        raise CommandError(
            "wrong_state",
            f"attempt {body.attempt} is {attempt.status}{done}, and only a held one can be"
            " resolved",
        )
    if attempt.hold == review.REVIEW:
        raise CommandError(
            "wrong_state",
            f"attempt {body.attempt} waits for votes: give yours with thermite campaign review",
        )
    return [HoldResolved(attempt=body.attempt, action=body.action, by=command.payload.issuer)]


def _vote(command: Command, state: State, body: VoteBody) -> list[Strict]:
    found = _running(state, body.assignment)
    asked = review.questions(found)
    if body.goal not in asked:
        names = ", ".join(asked) or "none"
        raise CommandError(
            "not_found",
            f"the contract has no goal {body.goal[:64]!a} to vote on: its review goals are {names}",
        )
    if len(body.reason) > MOST_NOTE:
        raise CommandError(
            "malformed_body",
            f"the reason has {len(body.reason)} characters, and at most {MOST_NOTE} are kept:"
            " shorten it",
        )
    attempt = found.attempts.get(body.attempt)
    if attempt is None:
        raise CommandError(
            "not_found", f"assignment {body.assignment} has no attempt {body.attempt}"
        )
    _check_vote(body, attempt, command.payload.issuer)
    return review.after_vote(found, body, command.payload.issuer)


def _check_vote(body: VoteBody, attempt: Attempt, voter: str) -> None:
    if body.goal in attempt.reviewed:
        met = "met" if attempt.reviewed[body.goal] else "unmet"
        raise CommandError(
            "wrong_state", f"goal {body.goal} of attempt {body.attempt} is decided: it is {met}"
        )
    if attempt.status != "held" or attempt.hold != review.REVIEW:
        raise CommandError(
            "wrong_state",
            f"attempt {body.attempt} is {attempt.result or attempt.status}, and waits for no vote",
        )
    if voter in {vote.voter for vote in attempt.votes.get(body.goal, [])}:
        raise CommandError(
            "wrong_state",
            f"key {voter} has voted on goal {body.goal} of attempt {body.attempt}: one key has one"
            " vote",
        )


def _check_extension(found: Assignment, body: ExtendBody) -> None:
    """Refuse new limits that are no budget or lie below the old ones."""
    budget = found.contract.budget
    for name, limit in body.budget.items():
        if name not in LIMITS:
            raise CommandError(
                "malformed_body",
                f"budget.{name[:40]} is no limit: there are {', '.join(LIMITS)}",
            )
        if not math.isfinite(limit) or limit <= 0 or (name in WHOLE_LIMITS and limit != int(limit)):
            raise CommandError(
                "malformed_body",
                f"budget.{name} is {limit:g}: give a whole number above 0"
                if name in WHOLE_LIMITS
                else f"budget.{name} is {limit:g}: give a number above 0",
            )
        old = getattr(budget, name)
        if old is None:
            raise CommandError(
                "wrong_state", f"budget.{name} has no limit now: one can't be set below that"
            )
        if limit < old:
            raise CommandError(
                "wrong_state",
                f"budget.{name} is {old:g}, and the new limit is {limit:g}: it may only grow",
            )
    _check_evidence(found, body)


def _check_evidence(found: Assignment, body: ExtendBody) -> None:
    """Refuse more attempts than the error budget can still confirm (judging, 3.3)."""
    if found.contract.campaign != "hill_climb" or "attempts" not in body.budget:
        return
    attempts = int(body.budget["attempts"])
    problems = [text for _, text in evidence_problems(found.contract.judging, attempts)]
    if problems:
        raise CommandError("wrong_state", "; ".join(problems))


def _update_trust(command: Command, state: State, body: TrustBody) -> list[Strict]:
    if body.version != state.trust_version + 1:
        raise CommandError(
            "wrong_state",
            f"this makes trust version {body.version}, and the rig has version"
            f" {state.trust_version}: make version {state.trust_version + 1}",
        )
    problems = trust_problems(body.keys)
    if problems:
        raise CommandError("malformed_body", f"this trust can't be used: {'; '.join(problems)}")
    root = next(key for key in body.keys if "root" in key.roles)
    old_roots = {key.public for key in state.trust if "root" in key.roles}
    if root.public not in old_roots and not Keyring([root]).find_signers(command.envelope):
        raise CommandError(
            "no_trusted_signature",
            f"key {root.id} becomes root and did not sign: sign with the old root and the new one",
        )
    return [TrustSet(version=body.version, keys=body.keys, by=command.payload.issuer)]


def _revoke(command: Command, state: State, body: RevokeBody) -> list[Strict]:
    """Revoke a key, or say another time since when an earlier revocation counts."""
    found = next((key for key in state.trust if key.id == body.key), None)
    if found is None:
        raise CommandError(
            "not_found",
            f"this rig trusts no key {body.key[:40]!a}: thermite key list --rig shows whom it does",
        )
    if "root" in found.roles:
        raise CommandError(
            "wrong_state",
            f"key {body.key} is the root: make a new root with update_trust (thermite key rotate)",
        )
    try:
        since = read_instant(body.since)
    except ValueError as error:
        raise CommandError("malformed_body", f"since: {error}") from None
    if since > command.not_before + SKEW:
        raise CommandError(
            "malformed_body",
            f"since: {body.since} is later than this command, of {command.payload.not_before}, and"
            " a key is revoked at once: name when it was last safe",
        )
    if found.revoked_since == body.since:
        raise CommandError(
            "wrong_state", f"key {body.key} is revoked since {found.revoked_since} already"
        )
    return [KeyRevoked(key=body.key, since=body.since)]
