"""Run one build on one cell in a fresh folder, and copy out what it left.

Source: the reference page "Kit manifest", Placeholders, Processes, Limits and Outputs;
the design page on judging, 3.4.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.errors import InfrastructureError
from thermite.kit.placeholder import expand, params_json, params_text
from thermite.kit.program import is_candidates, refusal
from thermite.rig.stages import Slot, StageCopy
from thermite.schema.kit import Cell, RunSection
from thermite.schema.stage import (
    CollectLimits,
    Entry,
    Environment,
    IsolationRecord,
    LimitName,
    Limits,
    RunRecord,
    StageResult,
)
from thermite.schema.strict import Strict
from thermite.schema.verdict import Failure

MOST_PROCESSES: Final = 256
"""RLIMIT_NPROC of a run (Kit manifest, Limits)."""
MOST_OUTPUTS: Final = 10_000
"""Most files and folders that a run leaves in its out folder (Kit manifest, Outputs)."""
MOST_LEVELS: Final = 32
"""Deepest nesting below the out folder (Kit manifest, Outputs)."""
OUT: Final = "out"
"""A run's output folder, below its own folder (Kit manifest, Processes)."""


@dataclass(frozen=True)
class Copies:
    """What a run may read: copies in its slot of the arm's build, run.copy and model files."""

    build: StageCopy
    kit: StageCopy
    build_name: str
    kit_name: str
    models_name: str


class RunOutcome(Strict):
    """How a run went; failure is None when its outputs lie in the given folder.

    stderr: its last 64 KiB; problems: why outputs were refused.
    """

    failure: Failure | None
    exit_code: int
    limit: LimitName | None
    stderr: bytes
    problems: list[str]
    record: RunRecord
    isolation: IsolationRecord


def execute(
    slot: Slot,
    section: RunSection,
    cell: Cell,
    copies: Copies,
    *,
    path_variable: str,
    settle_ms: int,
    into: Path,
) -> RunOutcome:
    """Run a build once, timed, and collect its out folder into `into`, as `into/out`.

    Args:
        slot: the run's, empty.
        cell: the cell's parameters.
        settle_ms: length of the busy loop on the run's CPU before it, ms.
        into: an empty folder of the harness.

    Raises:
        InfrastructureError: a placeholder is unknown or leaves its folder, a program that
            is not the candidate's can't be executed, or the stage can't be run; never the
            candidate's fault.
    """
    argv = expand(section.command, _places(slot.folder, copies))
    slot.place(_entries(cell))
    result = slot.run(
        argv,
        env=_environment(slot.folder, path_variable),
        limits=_limits(section),
        timed=True,
        settle_ms=settle_ms,
        readable=[copies.build, copies.kit],
    )
    word = section.command[0]
    if result.exec_error is not None and not is_candidates(word):
        kit = copies.kit.path / copies.kit_name
        raise InfrastructureError(refusal("run", word, result.exec_error, kit))
    if result.killed is not None:
        return _outcome(result, "run_killed", [])
    if result.exit_code != 0:
        return _outcome(result, "run_exited", [])
    # With the slash the folder itself is neither an entry nor a level (D53).
    collected = slot.collect([f"{OUT}/"], into, _collect_limits(section))
    problems = [*collected.problems, *(f"{path} is missing" for path in collected.missing)]
    return _outcome(result, "run_outputs_refused" if problems else None, problems)


def _places(folder: Path, copies: Copies) -> dict[str, Path]:
    return {
        "build": copies.build.path / copies.build_name,
        "params": folder / "params.txt",
        "params_json": folder / "params.json",
        "out": folder / OUT,
        "kit": copies.kit.path / copies.kit_name,
        "models": copies.kit.path / copies.models_name,
    }


def _entries(cell: Cell) -> list[Entry]:
    return [
        Entry(path=b"params.txt", kind="file", data=params_text(cell)),
        Entry(path=b"params.json", kind="file", data=params_json(cell)),
        Entry(path=OUT.encode(), kind="folder"),
    ]


def _environment(folder: Path, path_variable: str) -> Environment:
    home = str(folder)
    return {"PATH": path_variable, "LANG": "C.UTF-8", "USER": "run", "HOME": home, "TMPDIR": home}


def _limits(section: RunSection) -> Limits:
    return Limits(
        timeout_s=section.timeout_s,
        rss_mib=section.rss_mib,
        disk_mib=section.disk_mib,
        processes=MOST_PROCESSES,
    )


def _collect_limits(section: RunSection) -> CollectLimits:
    return CollectLimits.of(entries=MOST_OUTPUTS, levels=MOST_LEVELS, disk_mib=section.disk_mib)


def _outcome(result: StageResult, failure: Failure | None, problems: list[str]) -> RunOutcome:
    return RunOutcome(
        failure=failure,
        exit_code=result.exit_code,
        limit=result.killed,
        stderr=result.stderr,
        problems=problems,
        record=result.record,
        isolation=result.isolation,
    )
