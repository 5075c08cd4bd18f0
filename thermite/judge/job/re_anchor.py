"""The champion against the commit that the campaign started from: the headline gain.

Twenty blocks with cells and held-out cells as in confirm, no pass and no fail. Its claim
takes the place of the promotions' product, which would compound their luck.
"""

from collections.abc import Sequence

from thermite.errors import InfrastructureError
from thermite.judge.build.store import StoredBuild
from thermite.judge.job.attempt import check_target
from thermite.judge.job.builds import arm_build
from thermite.judge.job.desk import Desk
from thermite.judge.job.ending import Ending, ending
from thermite.judge.job.tape import Tape
from thermite.judge.job.walk import Walk
from thermite.judge.verdict import words
from thermite.judge.verdict.params import rule_parameters
from thermite.judge.verdict.rule import Ruling, decide_re_anchor
from thermite.schema.event import Interval
from thermite.schema.job import Job, Revision
from thermite.schema.rule import MeasuredBlock
from thermite.schema.strict import Strict
from thermite.schema.verdict import Arm, JudgeStage


class Claim(Strict):
    """What a re-anchor found: fractions, or why there is no figure.

    reason is None when gain and interval stand, and also when the harness is stopping and
    nothing stands yet; blocks: how many were counted.
    """

    gain: float | None
    interval: Interval | None
    blocks: int
    reason: str | None


def re_anchor(job: Job, desk: Desk) -> Claim:
    """Measure the champion (the job's candidate) against the starting commit (its champion)."""
    try:
        return _claimed(job, desk)
    except InfrastructureError as error:
        return _none(f"not possible: {error}")
    except OSError as error:  # the judge's own files: a full disk, a folder that is gone
        return _none(f"not possible: the rig's own files: {error}")


def _claimed(job: Job, desk: Desk) -> Claim:
    check_target(desk)
    p = rule_parameters(job.contract, desk.kit, desk.target, order_effect=job.order_effect)
    walk = ReAnchorWalk(job, desk, Tape(job, desk, p.metrics), p, job.tries)
    end = walk.end() or walk.from_the_builds()
    if end is None:
        return Claim(gain=None, interval=None, blocks=0, reason=None)
    if end.decision is None:
        return _none(f"not possible: {'; '.join(end.reasons)}")
    gain, interval = words.claim(end.decision)
    return Claim(gain=gain, interval=interval, blocks=end.decision.n, reason=None)


def _none(reason: str) -> Claim:
    return Claim(gain=None, interval=None, blocks=0, reason=reason)


class ReAnchorWalk(Walk):
    """One stage that ends at its number of blocks."""

    def stage(self) -> JudgeStage:
        """Return the one stage there is."""
        return "re_anchor"

    def decide(self, stage: JudgeStage, blocks: Sequence[MeasuredBlock]) -> Ruling:  # noqa: ARG002
        """Return `stop` after the last block, else `continue`."""
        return decide_re_anchor(blocks, self.p)

    def end(self) -> Ending | None:
        """Return the last decision once it stands, or what stopped the measuring."""
        last = self.tape.last_decision
        if last is not None and last.action == "stop":
            return Ending(kind="valid", reasons=[], decision=last)
        return ending(self.tape, self.p)

    def from_the_builds(self) -> Ending | None:
        """Build both commits and measure them."""
        start = self.job.champion
        if start is None:
            raise InfrastructureError("a re-anchor has no starting commit to measure against")
        theirs = self._built("champion", start)
        ours = self._built("candidate", self.job.candidate)
        return self.measure({"champion": theirs, "candidate": ours})

    def _built(self, arm: Arm, revision: Revision) -> StoredBuild:
        made = arm_build(self.job, self.desk, arm, revision)
        if self.is_fresh or not made.event.cached:
            self.desk.append([made.event])
        if made.stored.failure is not None:
            raise InfrastructureError(f"{revision.commit}: {made.stored.reason}")
        return made.stored
