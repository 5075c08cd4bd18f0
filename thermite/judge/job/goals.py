"""A candidate and its goals: built, then verified in the visible pass and in the hidden one.

Each run and its check are one transaction, and so are the goals of a pass; what is due next
follows from the facts alone, so a job that was killed goes on with the next cell.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack

from thermite.errors import InfrastructureError
from thermite.judge.build.store import StoredBuild
from thermite.judge.job.bench import Bench, open_bench
from thermite.judge.job.builds import arm_build
from thermite.judge.job.desk import Desk
from thermite.judge.job.ending import plain_verdict
from thermite.judge.job.outcome import Identity
from thermite.judge.job.tape import MOST_INTERRUPTED
from thermite.judge.measure.goal_run import goal_runs
from thermite.judge.verdict import words
from thermite.judge.verdict.goals import Course, Pass
from thermite.judge.verdict.params import goal_rules
from thermite.judge.verdict.verification import Due, Reports, replayed, sent, verification
from thermite.schema.event import Block, Check, GoalChecked, Run, Verdict
from thermite.schema.goal_rules import GoalRules
from thermite.schema.job import Job, JudgeFact
from thermite.schema.rule import GoalRun, MetricRule
from thermite.schema.verdict import BLAME


def verify_goals(job: Job, desk: Desk) -> Verdict | None:
    """Return `goals_met`, `goals_unmet` or why nothing was verified; None: stopping.

    Raises:
        InfrastructureError: the rig or the kit failed.
    """
    walk = GoalWalk(job, desk)
    if walk.interrupted > MOST_INTERRUPTED:
        said = f"interrupted {walk.interrupted} times: the harness was ended while this ran"
        return plain_verdict(job, "crash_infra", [said])
    made = arm_build(job, desk, "candidate", job.candidate)
    if not job.history or not made.event.cached:
        desk.append([made.event])
    if made.stored.failure is not None:
        kind = BLAME["candidate"][made.stored.failure]
        return plain_verdict(job, kind, [made.stored.reason or ""])
    known = job.judged_outputs.get(made.stored.outputs_digest)
    if known is not None and known != job.attempt and not job.history:
        return plain_verdict(
            job, "duplicate", [f"the same build outputs were judged as attempt {known}"]
        )
    return walk.verified(made.stored)


class GoalWalk:
    """Both passes of one job, from what its history holds to the verdict."""

    def __init__(self, job: Job, desk: Desk) -> None:
        self.job, self.desk = job, desk
        self.rules: GoalRules = goal_rules(job.contract, desk.kit)
        self.facts: list[JudgeFact] = list(job.history)
        self.passes: list[Pass] = ["visible"]
        if job.contract.held_out_cells:
            self.passes.append("hidden")
        if job.history:
            self._void_what_was_cut_off()

    @property
    def interrupted(self) -> int:
        """How often a kill cut this attempt off, earlier tries included."""
        here = sum(isinstance(f, Block) and f.dropped == "interrupted" for f in self.facts)
        return self.job.interrupted + here

    def verified(self, build: StoredBuild) -> Verdict | None:
        """Verify all goals of a build and return the verdict, None when stopping.

        Raises:
            InfrastructureError: the rig or the kit failed.
        """
        with ExitStack() as stack:
            bench: Bench | None = None
            for which in self.passes:
                walk = self._walk(which)
                found = self._after_the_facts(walk, which)
                while isinstance(found, Due):
                    if self.desk.stopping():
                        return None
                    bench = bench or stack.enter_context(self._bench(build))
                    facts = self._ran(bench, which, found)
                    self._add(facts)
                    found = sent(walk, next(goal_runs(facts, which, self.rules.metrics)))
                self._report(which, found)
        return self._verdict()

    def _void_what_was_cut_off(self) -> None:
        """Say that a kill cut this job off: a candidate must not fell the harness for ever."""
        which = self._reached()
        numbers = [f.block for f in self.facts if isinstance(f, Block) and f.stage == which]
        void = Block(
            attempt=self.job.attempt,
            tries=self.job.tries,
            stage=which,
            block=len(numbers),
            d={},
            D=None,
            dropped="interrupted",
        )
        self._add([void])

    def _reached(self) -> Pass:
        reported = any(isinstance(f, GoalChecked) for f in self.facts)
        return "hidden" if reported and len(self.passes) > 1 else "visible"

    def _bench(self, build: StoredBuild) -> AbstractContextManager[Bench]:
        identity = Identity(attempt=self.job.attempt, tries=self.job.tries)
        settle_ms = self.job.contract.judging.settle_ms
        return open_bench(self.desk, identity, {}, settle_ms, {"candidate": build})

    def _course(self, which: Pass) -> Course:
        contract, rules = self.job.contract, self.rules
        held_out = contract.held_out_cells
        return Course(contract.goals, rules.verifiers, held_out, rules.held_out, which)

    def _walk(self, which: Pass) -> Generator[Due, GoalRun, Reports]:
        warmups = self.job.contract.judging.warmup_runs
        return verification(self._course(which), self.rules.metrics, warmups)

    def _after_the_facts(
        self, walk: Generator[Due, GoalRun, Reports], which: Pass
    ) -> Due | Reports:
        try:
            return replayed(walk, goal_runs(self.facts, which, self.rules.metrics))
        except ValueError as error:
            raise InfrastructureError(f"the history of this try does not fit: {error}") from None

    def _ran(self, bench: Bench, which: Pass, due: Due) -> Sequence[Run | Check]:
        metrics: Mapping[str, MetricRule] = {}
        if due.task.kind == "metric_threshold":
            name = self._course(which).threshold(due.task).metric
            metrics = {name: self.rules.metrics[name]}
        return bench.alone(due.cell, stage=which, block=due.block, metrics=metrics)

    def _report(self, which: Pass, reports: Reports) -> None:
        if any(isinstance(f, GoalChecked) and f.passed == which for f in self.facts):
            return
        checked = [
            GoalChecked(
                attempt=self.job.attempt or 0,
                tries=self.job.tries,
                goal=goal,
                passed=which,
                met=decided.met,
                reasons=decided.reasons,
            )
            for goal, decided in reports
            if decided.met is not None
        ]
        if checked:
            self._add(checked)

    def _add(self, facts: Sequence[JudgeFact]) -> None:
        self.desk.append(facts)
        self.facts += facts

    def _verdict(self) -> Verdict:
        checked = [f for f in self.facts if isinstance(f, GoalChecked)]
        unmet = words.unmet_goals(self.job.contract, checked)
        return plain_verdict(
            self.job,
            "goals_unmet" if unmet else "goals_met",
            unmet,
            notes=words.isolation_notes(self.desk.stages.isolation),
        )
