"""Run the kit's check on one run's outputs.

Working folder the kit, environment PATH only, a time limit and no other. The check reads
copies: of the kit, of the arm's build, of the outputs, and the judge's own parameters.
Source: the reference page "Kit manifest", Placeholders, Processes and Check output.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.errors import InfrastructureError
from thermite.judge.check.result import CheckResult, read_result
from thermite.kit.placeholder import expand, params_json, params_text
from thermite.kit.program import is_candidates, refusal
from thermite.rig.stages import StageCopy, Stages
from thermite.schema.kit import Cell, CheckSection
from thermite.schema.stage import Limits
from thermite.schema.strict import Strict

SLOT: Final = "check"
"""The slot that checks run in (isolation, 4.1)."""


@dataclass(frozen=True)
class CheckCopies:
    """What a check may read beside the run's outputs, each below its copy's path."""

    kit: StageCopy
    build: StageCopy
    kit_name: str
    build_name: str
    models_name: str


class CheckOutcome(Strict):
    """What came of a check; result is None when it printed none or ran out of time."""

    result: CheckResult | None
    exit_code: int
    stderr: bytes


def examine(
    stages: Stages,
    section: CheckSection,
    cell: Cell,
    copies: CheckCopies,
    *,
    outputs: Path,
    scratch: Path,
) -> CheckOutcome:
    """Run the check on the outputs of one run.

    Args:
        cell: the cell's parameters; the check gets copies of the judge's own.
        outputs: the run's collected out folder.
        scratch: a folder of the harness for the parameters' files.

    Raises:
        InfrastructureError: a placeholder is unknown or leaves its folder, the check can't
            be executed, or the stage can't be run.
    """
    with stages.copy_for(SLOT) as given:
        _add_params(given, cell, scratch)
        given.add(outputs, "out")
        argv = expand(section.command, _places(given, copies))
        with stages.slot(SLOT) as slot:
            result = slot.run(
                argv,
                env={"PATH": stages.path_variable},
                limits=Limits(timeout_s=section.timeout_s),
                cwd=copies.kit.path / copies.kit_name,
                readable=[given, copies.kit, copies.build],
            )
    word = section.command[0]
    if result.exec_error is not None and not is_candidates(word):
        kit = copies.kit.path / copies.kit_name
        raise InfrastructureError(refusal("check", word, result.exec_error, kit))
    # A check that ran out of time has no result, whatever it printed (D50).
    said = None if result.killed else read_result(result.stdout)
    code = 137 if result.killed else result.exit_code
    return CheckOutcome(result=said, exit_code=code, stderr=result.stderr)


def _add_params(given: StageCopy, cell: Cell, scratch: Path) -> None:
    for name, raw in (("params.txt", params_text(cell)), ("params.json", params_json(cell))):
        file = scratch / name
        file.write_bytes(raw)
        given.add(file, name)


def _places(given: StageCopy, copies: CheckCopies) -> dict[str, Path]:
    return {
        "build": copies.build.path / copies.build_name,
        "params": given.path / "params.txt",
        "params_json": given.path / "params.json",
        "out": given.path / "out",
        "kit": copies.kit.path / copies.kit_name,
        "models": copies.kit.path / copies.models_name,
    }
