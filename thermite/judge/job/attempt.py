"""One attempt from its builds to its verdict.

Both arms are built, champion first: a rig that can't build what it built before is broken,
and no candidate is blamed for that. Then duplicates by content, warm-up, screen, confirm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from thermite.errors import InfrastructureError
from thermite.judge.build.store import StoredBuild
from thermite.judge.job.builds import arm_build
from thermite.judge.job.desk import Desk
from thermite.judge.job.ending import Ending, concluded, ending, plain_verdict
from thermite.judge.job.goals import verify_goals
from thermite.judge.job.limits import limit_notes
from thermite.judge.job.signals import signal_notes
from thermite.judge.job.single import judge_alone
from thermite.judge.job.tape import Tape
from thermite.judge.job.walk import Walk
from thermite.judge.verdict import exact, reason
from thermite.judge.verdict.params import alpha_k, rule_parameters
from thermite.judge.verdict.rule import Ruling, decide_confirm, decide_screen
from thermite.kit.examine import limit_warnings
from thermite.schema.event import JudgeStarted, Verdict
from thermite.schema.job import Held, Job, JudgeFact
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.strict import Strict
from thermite.schema.verdict import BLAME, Arm, JudgeStage

BYTE_IDENTICAL = "the build is byte-identical to the champion's"
"""Reason of a candidate that builds to the champion's own bytes (judging, 3.9)."""


def judge(job: Job, desk: Desk) -> Verdict | Held | None:
    """Judge a candidate against the champion, by its goals, or alone; return what came of this try.

    Builds, runs, checks, blocks and decisions are appended on the way; the verdict is not.
    None: the harness is stopping, and the job goes on later from its history.
    """
    facts: list[Strict] = list(job.history)

    def append(made: Sequence[Strict]) -> None:
        desk.append(made)
        facts.extend(made)

    answer = _judged(job, replace(desk, append=append))
    if not isinstance(answer, Verdict):
        return answer
    notes = [*answer.notes, *limit_notes(facts, desk.kit), *signal_notes(facts, desk.kit)]
    return msgspec.structs.replace(answer, notes=notes)


def _judged(job: Job, desk: Desk) -> Verdict | Held | None:
    try:
        check_target(desk)
        match job.kind:
            case "single":
                return judge_alone(job, desk)
            case "goals":
                return verify_goals(job, desk)
            case _:
                return _attempt(job, desk)
    except InfrastructureError as error:
        return plain_verdict(job, "crash_infra", [str(error), *_too_little(desk, str(error))])
    except OSError as error:  # the judge's own files: a full disk, a folder that is gone
        return plain_verdict(job, "crash_infra", [f"the rig's own files: {error}"])


def _too_little(desk: Desk, why: str) -> list[str]:
    """Return what of the kit's limits may explain that memory ran out."""
    killed = (reason.run_killed("memory"), "build killed (memory)")
    return list(limit_warnings(desk.kit)) if any(text in why for text in killed) else []


def check_target(desk: Desk) -> None:
    """Refuse a kit that measures on another target than this rig has (K-200)."""
    if desk.kit.target != desk.target:
        name, target = desk.kit.name, desk.kit.target
        raise InfrastructureError(f"kit {name} measures {target}, this rig has {desk.target}")


def _attempt(job: Job, desk: Desk) -> Verdict | Held | None:
    started = next((f for f in job.history if isinstance(f, JudgeStarted)), None)
    if started is None:
        p = rule_parameters(job.contract, desk.kit, desk.target, order_effect=job.order_effect)
        walk = AttemptWalk(job, desk, Tape(job, desk, p.metrics), p, job.k)
    else:
        p = msgspec.convert(started.params, RuleParameters)
        walk = AttemptWalk(job, desk, Tape(job, desk, p.metrics), p, started.k)
    end = walk.end() or walk.from_the_builds()
    return None if end is None else concluded(walk.tape, end, walk.p, desk.stages.isolation)


class AttemptWalk(Walk):
    """Screen, then confirm."""

    def stage(self) -> JudgeStage:
        """Return confirm once screen has passed; a value that differs there leads back."""
        last = self.tape.last_decision
        passed = last is not None and (last.stage == "confirm" or last.action == "pass")
        returned = last is not None and last.rule == exact.RULE and self.tape.was_not_exact
        return "confirm" if passed and not returned else "screen"

    def decide(self, stage: JudgeStage, blocks: Sequence[MeasuredBlock]) -> Ruling:
        """Return what the rule says after the newest of the counted blocks."""
        spent_s = self.tape.run_seconds
        if stage == "screen":
            return decide_screen(blocks, self.p, spent_s=spent_s)
        screen = self.tape.counted("screen")
        return decide_confirm(screen, blocks, self.p, self.k, spent_s=spent_s)

    def end(self) -> Ending | None:
        """Return what the facts lead to, None while the attempt goes on."""
        return ending(self.tape, self.p)

    @property
    def is_fresh(self) -> bool:
        """Whether screening has not begun, so that no k is used."""
        return self.tape.started is None

    def beginning(self, shares: Mapping[str, float]) -> list[JudgeFact]:
        """Return `judge_started`: both builds and the warm-up stand."""
        self.p = msgspec.structs.replace(self.p, startup_share=dict(shares))
        job, isolation = self.job, self.desk.stages.isolation
        return [
            JudgeStarted(
                attempt=job.attempt or 0,
                tries=job.tries,
                k=self.k,
                alpha_k=alpha_k(self.p.judging, self.k),
                candidate=job.candidate.commit,
                champion=job.champion.commit if job.champion else "",
                contract_sha256=job.contract_sha256,
                kit_commit=job.kit.commit,
                rule=self.p.judging.rule,
                params=msgspec.to_builtins(self.p),
                isolation=isolation.level,
                agents_during_timing=self.desk.agents_during_timing,
            )
        ]

    def from_the_builds(self) -> Ending | None:
        """Build both arms and, if they differ in content, measure them."""
        if self.job.champion is None:
            raise InfrastructureError("an attempt has no champion to be judged against")
        theirs = self._built("champion")
        ours = self._built("candidate")
        if ours.failure is not None:
            return Ending(kind=BLAME["candidate"][ours.failure], reasons=[ours.reason or ""])
        known = self._known_content(ours, theirs) if self.is_fresh else None
        return known or self.measure({"champion": theirs, "candidate": ours})

    def _built(self, arm: Arm) -> StoredBuild:
        champion = self.job.champion or self.job.candidate
        revision = champion if arm == "champion" else self.job.candidate
        made = arm_build(self.job, self.desk, arm, revision)
        if self.is_fresh or not made.event.cached:
            self.desk.append([made.event])
        if arm == "champion" and made.stored.failure is not None:
            raise InfrastructureError(f"the champion's build failed: {made.stored.reason}")
        return made.stored

    def _known_content(self, ours: StoredBuild, theirs: StoredBuild) -> Ending | None:
        digest = ours.outputs_digest
        if digest == theirs.outputs_digest:
            return Ending(kind="not_better", reasons=[BYTE_IDENTICAL])
        attempt = self.job.judged_outputs.get(digest)
        if attempt is None or attempt == self.job.attempt:
            return None
        said = f"the same build outputs were judged as attempt {attempt}"
        return Ending(kind="duplicate", reasons=[said])
