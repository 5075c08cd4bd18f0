"""Run the kit's build on one commit and take its outputs, or say why there are none.

The build runs as user `builder` in a fresh folder with the commit's files. What it leaves
is copied out by the collector after nothing of it runs any more. Source: the reference
page "Kit manifest", Processes, Limits, Outputs and Outcomes.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from thermite.rig.stages import Slot
from thermite.schema.kit import BuildSection
from thermite.schema.stage import (
    Collected,
    CollectLimits,
    Entry,
    Environment,
    IsolationRecord,
    LimitName,
    Limits,
    StageResult,
)
from thermite.schema.strict import Strict
from thermite.schema.verdict import Failure

MOST_PROCESSES: Final = 512
"""RLIMIT_NPROC of a build (Kit manifest, Limits)."""
MOST_OUTPUTS: Final = 20_000
"""Most files and folders of a build's outputs (Kit manifest, Outputs)."""
MOST_LEVELS: Final = 32
"""Deepest nesting of outputs (Kit manifest, Outputs)."""


class BuildOutcome(Strict):
    """How a build went; failure is None when its outputs lie in the given folder.

    exit_code: as a shell gives it; limit: the limit that ended it; log: both streams as
    they came; missing and problems: of the outputs; exec_error: why the program was not
    executed at all, or None; seconds: on the spawner's clock.
    """

    failure: Failure | None
    exit_code: int
    limit: LimitName | None
    log: bytes
    missing: list[str]
    problems: list[str]
    exec_error: str | None
    seconds: float
    isolation: IsolationRecord


def make_build(
    slot: Slot, entries: Iterable[Entry], section: BuildSection, path_variable: str, into: Path
) -> BuildOutcome:
    """Build what the entries lay out, and collect the declared outputs into a folder.

    Args:
        slot: the builder's, empty.
        path_variable: PATH of every stage.
        into: an empty folder of the harness.

    Raises:
        InfrastructureError: the stage can't be run; never the candidate's fault.
    """
    slot.place(entries)
    result = slot.run(
        section.command,
        env=_environment(slot.folder, path_variable),
        limits=_limits(section),
        join_output=True,
    )
    if result.killed is not None:
        return _outcome(result, "build_killed")
    if result.exit_code != 0:
        return _outcome(result, "build_failed")
    outputs = list(dict.fromkeys(section.outputs))
    collected = slot.collect(outputs, into, _collect_limits(section))
    return _outcome(result, _outputs_failure(collected), collected)


def _environment(folder: Path, path_variable: str) -> Environment:
    home = str(folder)
    return {
        "PATH": path_variable,
        "LANG": "C.UTF-8",
        "USER": "builder",
        "HOME": home,
        "TMPDIR": home,
    }


def _limits(section: BuildSection) -> Limits:
    return Limits(
        timeout_s=section.timeout_s,
        rss_mib=section.rss_mib,
        disk_mib=section.disk_mib,
        processes=MOST_PROCESSES,
    )


def _collect_limits(section: BuildSection) -> CollectLimits:
    return CollectLimits.of(entries=MOST_OUTPUTS, levels=MOST_LEVELS, disk_mib=section.disk_mib)


def _outputs_failure(collected: Collected) -> Failure | None:
    # Both may be so; what is missing wins in the reason (D54).
    if collected.missing:
        return "build_outputs_missing"
    return "build_outputs_refused" if collected.problems else None


def _outcome(
    result: StageResult, failure: Failure | None, collected: Collected | None = None
) -> BuildOutcome:
    return BuildOutcome(
        failure=failure,
        exit_code=result.exit_code,
        limit=result.killed,
        log=result.stdout,
        missing=list(collected.missing) if collected else [],
        problems=list(collected.problems) if collected else [],
        exec_error=result.exec_error,
        seconds=result.record.t_ns / 1e9,
        isolation=result.isolation,
    )
