"""Both arms' builds: found in the store, or made and kept there."""

from dataclasses import dataclass

from thermite.errors import InfrastructureError
from thermite.judge.build.key import build_key
from thermite.judge.build.make import BuildOutcome, make_build
from thermite.judge.build.source import source_entries
from thermite.judge.build.store import StoredBuild
from thermite.judge.job.desk import Desk
from thermite.judge.verdict import reason
from thermite.kit.export import SourceRefused
from thermite.kit.program import is_candidates, refusal
from thermite.schema.event import Build
from thermite.schema.ids import BuildKey
from thermite.schema.job import Job, Revision
from thermite.schema.stage import IsolationRecord
from thermite.schema.verdict import Arm, Failure

SLOT = "builder-0"
"""The slot that builds run in (isolation, 4.1)."""


@dataclass(frozen=True)
class ArmBuild:
    """One arm's build and the event that tells of it."""

    arm: Arm
    stored: StoredBuild
    event: Build


def arm_build(job: Job, desk: Desk, arm: Arm, revision: Revision) -> ArmBuild:
    """Return the build of an arm, made now unless its key is known.

    Raises:
        InfrastructureError: the stage can't be run, the kit's files are not there, or its
            build can't be executed.
    """
    key = build_key(revision.commit, job.kit.commit, desk.kit.build, desk.toolchain)
    known = desk.store.find(key)
    if known is not None:
        return ArmBuild(arm, known, _event(job, arm, revision, known, cached=True))
    return _made(job, desk, arm, revision, key)


def _made(job: Job, desk: Desk, arm: Arm, revision: Revision, key: BuildKey) -> ArmBuild:
    section = desk.kit.build
    try:
        tree = desk.export(revision.commit)
    except SourceRefused as refused:
        why = reason.source_refused(refused.problems)
        stored = _failed(desk, key, "source_refused", why)
        return ArmBuild(arm, stored, _event(job, arm, revision, stored, cached=False))
    entries = source_entries(tree, desk.kit_folder, section.copy, section.outputs)
    with desk.stages.slot(SLOT) as slot:
        into = desk.store.empty_place(key)
        outcome = make_build(slot, entries, section, desk.stages.path_variable, into)
    word = section.command[0]
    if outcome.exec_error is not None and not is_candidates(word):
        raise InfrastructureError(refusal("build", word, outcome.exec_error, desk.kit_folder))
    if outcome.failure is None:
        stored = desk.store.keep(key)
    else:
        stored = _failed(desk, key, outcome.failure, _words(outcome))
    event = _event(
        job, arm, revision, stored, cached=False, seconds=outcome.seconds, ran=outcome.isolation
    )
    return ArmBuild(arm, stored, event)


def _failed(desk: Desk, key: BuildKey, failure: Failure, why: str) -> StoredBuild:
    desk.store.remember_failure(key, failure, why)
    return StoredBuild(key=key, failure=failure, reason=why, files=[])


def _words(outcome: BuildOutcome) -> str:
    match outcome.failure:
        case "build_killed" if outcome.limit is not None:
            return reason.build_killed(outcome.limit, outcome.log)
        case "build_outputs_missing":
            return reason.build_outputs_missing(outcome.missing, outcome.log)
        case "build_outputs_refused":
            return reason.build_outputs_refused(outcome.problems, outcome.log)
        case _:
            return reason.build_failed(outcome.exit_code, outcome.log)


def _event(
    job: Job,
    arm: Arm,
    revision: Revision,
    stored: StoredBuild,
    *,
    cached: bool,
    seconds: float = 0.0,
    ran: IsolationRecord | None = None,
) -> Build:
    return Build(
        attempt=job.attempt,
        tries=job.tries,
        arm=arm,
        key=stored.key,
        tree=revision.tree,
        outputs_digest=stored.outputs_digest if stored.failure is None else None,
        outcome=stored.failure or "ok",
        reason=stored.reason,
        seconds=seconds,
        cached=cached,
        isolation=ran,
    )
