"""What all runs of a job share, and how one run and its check become facts.

Copies of both arms' builds and of the kit's files are made once and hashed before every
run. The runs of a block come one after the other while every other slot stands still;
their checks come after the block, so that no check's work lies between two timed runs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from thermite.errors import InfrastructureError
from thermite.judge.build.store import StoredBuild, verify_copy
from thermite.judge.check.examine import SLOT as CHECK_SLOT
from thermite.judge.check.examine import CheckCopies, examine
from thermite.judge.job.desk import Desk
from thermite.judge.job.outcome import Identity, as_facts, exit_facts
from thermite.judge.run.execute import OUT, Copies, RunOutcome, execute
from thermite.judge.run.kit_files import gather
from thermite.judge.verdict.coin import Turn
from thermite.rig.stages import StageCopy
from thermite.schema.event import Check, Run
from thermite.schema.ids import BuildKey
from thermite.schema.rule import MetricRule
from thermite.schema.verdict import Arm, JudgeStage

RUN_SLOT: Final = "run-0"
"""The slot that timed runs use on a rig with one run slot (isolation, 4.1)."""
PROBES: Final = 10
"""How often the program that does nothing is timed for a stage (judging, 3.5)."""

_BUILD: Final = "build"
_KIT: Final = "kit"
_MODELS: Final = "models"


@dataclass(frozen=True)
class Bench:
    """Everything set up for one job; `settle_ms`: ms of busy loop before a timed run."""

    desk: Desk
    identity: Identity
    metrics: Mapping[str, MetricRule]
    settle_ms: int
    builds: Mapping[Arm, StoredBuild]
    copies: Mapping[Arm, Copies]
    check_copies: Mapping[Arm, CheckCopies]
    scratch: Path

    def block(self, stage: JudgeStage, block: int, turns: Sequence[Turn]) -> list[Run | Check]:
        """Run both arms in every cell of a block, and return the facts of it.

        Raises:
            InfrastructureError: the rig or the kit failed; the block is void.
        """
        order = [(turn.cell, arm) for turn in turns for arm in turn.arms]
        return self._runs(stage, block, order, self.settle_ms)

    def alone(
        self,
        cell: str,
        *,
        stage: JudgeStage = "single",
        block: int | None = None,
        metrics: Mapping[str, MetricRule] | None = None,
    ) -> list[Run | Check]:
        """Run the candidate once in a cell, without a champion, and return the facts of it.

        Args:
            metrics: that the run must have values of; the bench's own when none are given.

        Raises:
            InfrastructureError: the rig or the kit failed.
        """
        order: list[tuple[str, Arm]] = [(cell, "candidate")]
        return self._runs(stage, block, order, self.settle_ms, metrics)

    def warm_up(
        self, stage: JudgeStage, cells: Sequence[str], times: int
    ) -> tuple[list[Run | Check], list[int]]:
        """Run each arm so often in each cell; return the facts and the start-up probes, ns.

        Raises:
            InfrastructureError: the rig or the kit failed.
        """
        order: list[tuple[str, Arm]] = []
        for cell in cells:
            order += [(cell, arm) for arm in self.builds for _ in range(times)]
        facts = self._runs(stage, None, order, 0)
        # In a block as the runs were, so that both are measured on the same still machine.
        with self.desk.stages.block(), self.desk.stages.slot(RUN_SLOT) as slot:
            return facts, self.desk.stages.startup_probe_ns(slot, PROBES)

    def _runs(
        self,
        stage: JudgeStage,
        block: int | None,
        order: Sequence[tuple[str, Arm]],
        settle_ms: int,
        metrics: Mapping[str, MetricRule] | None = None,
    ) -> list[Run | Check]:
        wanted = self.metrics if metrics is None else metrics
        facts: list[Run | Check] = []
        with TemporaryDirectory(dir=self.scratch) as kept:
            outcomes = self._executed(order, Path(kept), settle_ms)
            for position, outcome in enumerate(outcomes):
                cell, arm = order[position]
                facts += self._checked(
                    self.identity.at(stage, block, cell, arm, position),
                    outcome,
                    Path(kept, str(position)),
                    wanted,
                )
                if is_failed(facts):
                    break
        return facts

    def _executed(
        self, order: Sequence[tuple[str, Arm]], kept: Path, settle_ms: int
    ) -> list[RunOutcome]:
        """Run until the end, or until a run fails: nothing is tried until it works."""
        outcomes: list[RunOutcome] = []
        with self.desk.stages.block():
            for position, (cell, arm) in enumerate(order):
                into = kept / str(position)
                into.mkdir()
                outcomes.append(self._execute(cell, arm, into, settle_ms))
                if outcomes[-1].failure is not None:
                    break
        return outcomes

    def _execute(self, cell: str, arm: Arm, into: Path, settle_ms: int) -> RunOutcome:
        desk, copies = self.desk, self.copies[arm]
        verify_copy(self.builds[arm], copies.build.path / _BUILD)
        with desk.stages.slot(RUN_SLOT) as slot:
            outcome = execute(
                slot,
                desk.kit.run,
                desk.kit.cells[cell],
                copies,
                path_variable=desk.stages.path_variable,
                settle_ms=settle_ms,
                into=into,
            )
        wanted, got = desk.stages.isolation.level, outcome.isolation.level
        if got != wanted:
            # The arms of one job are never mixed (isolation, 4.2).
            raise InfrastructureError(f"a run got isolation {got}, and this job has {wanted}")
        return outcome

    def _checked(
        self, fact: Run, outcome: RunOutcome, kept: Path, metrics: Mapping[str, MetricRule]
    ) -> list[Run | Check]:
        if outcome.failure is not None:
            return exit_facts(fact, outcome)
        with TemporaryDirectory(dir=self.scratch) as scratch:
            said = examine(
                self.desk.stages,
                self.desk.kit.check,
                self.desk.kit.cells[fact.cell],
                self.check_copies[fact.arm],
                outputs=kept / OUT,
                scratch=Path(scratch),
            )
        return as_facts(fact, outcome, said, metrics)


def is_failed(facts: Sequence[object]) -> bool:
    """Return whether a run among the facts failed."""
    return any(isinstance(fact, Run) and fact.outcome != "ok" for fact in facts)


@contextmanager
def open_bench(
    desk: Desk,
    identity: Identity,
    metrics: Mapping[str, MetricRule],
    settle_ms: int,
    builds: Mapping[Arm, StoredBuild],
) -> Iterator[Bench]:
    """Make the copies that a job's runs and checks read, and remove them at the end.

    Raises:
        InfrastructureError: a path of run.copy is not in the kit or is a link.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(dir=desk.scratch)))
        run_kit = _copy(stack, desk, RUN_SLOT)
        run_kit.add(_gathered(desk, scratch), _KIT)
        check_kit = _copy(stack, desk, CHECK_SLOT)
        # Its export has refused links that leave the kit; run.copy alone may hold none (K-107).
        check_kit.add(desk.kit_folder, _KIT, links=True)
        for sha256, file in desk.models.items():
            run_kit.add(file, f"{_MODELS}/{sha256}")
            check_kit.add(file, f"{_MODELS}/{sha256}")
        files = {arm: desk.store.files(BuildKey(build.key)) for arm, build in builds.items()}
        yield Bench(
            desk=desk,
            identity=identity,
            metrics=metrics,
            settle_ms=settle_ms,
            builds=builds,
            copies={
                arm: Copies(_build(stack, desk, RUN_SLOT, path), run_kit, _BUILD, _KIT, _MODELS)
                for arm, path in files.items()
            },
            check_copies={
                arm: CheckCopies(
                    check_kit, _build(stack, desk, CHECK_SLOT, path), _KIT, _BUILD, _MODELS
                )
                for arm, path in files.items()
            },
            scratch=scratch,
        )


def _copy(stack: ExitStack, desk: Desk, slot: str) -> StageCopy:
    return stack.enter_context(desk.stages.copy_for(slot))


def _build(stack: ExitStack, desk: Desk, slot: str, files: Path) -> StageCopy:
    copy = _copy(stack, desk, slot)
    copy.add(files, _BUILD)
    return copy


def _gathered(desk: Desk, scratch: Path) -> Path:
    folder = scratch / _KIT
    folder.mkdir()
    gather(desk.kit_folder, desk.kit.run.copy, folder)
    return folder
