"""`thermite judge`: one verdict here and now, without a rig and without a signed order."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from thermite.cli.arguments import FRACTION, KIT, PATH, PLACE, TEXT, FilePath, Names
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.kit_check import kit_folder as in_folder
from thermite.cli.output import Output, visible, with_output
from thermite.cli.pulse import pulse
from thermite.control.contract_file import read_contract_file
from thermite.errors import ContractError, UsageError
from thermite.harness.judge_here import Named, OfContract, Question, as_it_stands, judge_here, told
from thermite.harness.kept_state import check_kept_state
from thermite.harness.local_job import local_judge
from thermite.kit.manifest import load_kit
from thermite.report.campaign import isolation_sentence, percent, span
from thermite.schema.contract import Contract
from thermite.schema.contract_text import contract_of

EXITS: Final = {
    **dict.fromkeys(("valid", "promoted", "not_better", "not_confirmed", "duplicate"), Exit.OK),
    **dict.fromkeys(("noisy_rig", "held"), Exit.WRONG_STATE),
    "crash_infra": Exit.INFRASTRUCTURE,
}
"""judging, 3.11: whatever else is said counts against the candidate."""


@click.command("judge", epilog="Example: thermite judge . --kit ../kit --champion HEAD")
@click.argument("project", type=PLACE, metavar="PROJECT")
@click.option(
    "--kit",
    "kit_folder",
    required=True,
    metavar="DIR",
    type=KIT,
    help="The kit that judges.",
)
@click.option(
    "--champion", type=PLACE, metavar="REV|DIR", help="What it must beat; none: is it valid at all?"
)
@click.option(
    "--cells", type=Names(), multiple=True, metavar="NAME[,NAME]…", help="Cells; all by default."
)
@click.option(
    "--metric", type=TEXT, metavar="NAME", help="What is improved; the kit's only metric."
)
@click.option("--direction", type=click.Choice(["max", "min"]), help="Which way is better.")
@click.option(
    "--min-effect",
    type=FRACTION,
    metavar="FRACTION",
    help="The least gain that counts.",
)
@click.option(
    "--contract",
    "contract_file",
    metavar="FILE",
    type=PATH,
    help="A campaign's contract that says all four, guards and held-out cells too.",
)
@click.option(
    "--state",
    metavar="DIR",
    type=FilePath(file_okay=False),
    help="Keep ledger and builds there; else they are thrown away.",
)
@with_output
def command(  # noqa: PLR0913, PLR0917 - one parameter for each option
    output: Output,
    project: str,
    kit_folder: Path,
    champion: str | None,
    cells: tuple[tuple[str, ...], ...],
    metric: str | None,
    direction: str | None,
    min_effect: float | None,
    contract_file: Path | None,
    state: Path | None,
) -> None:
    """Judge PROJECT with a kit, here and now: a folder as it stands, or FOLDER@REV.

    The rule itself is tried by `thermite judge simulate`.
    """
    named = Named.of(project)
    against = None if champion is None else Named.of(champion, beside=named)
    wanted = [name for names in cells for name in names]
    question: Question | OfContract = Question(wanted, metric, direction, min_effect)
    if contract_file is not None:
        if question != Question([]):
            raise UsageError(
                "--contract says cells, metric, direction and least gain: give it alone"
            )
        question = _of_contract(contract_file)
    if state is not None:
        check_kept_state(state, [one.folder for one in (named, against) if one] + [kit_folder])
    kit = load_kit(in_folder(kit_folder))
    with (
        as_it_stands(kit_folder) as plain_kit,
        _state(state) as folder,
        local_judge(folder, plain_kit, kit.name) as judge,
    ):
        with pulse(output, f"judging {project} with {kit.name}"):
            found = judge_here(judge, kit, named, against, question)
        now = judge.bench.book.state
        document = told(found, alone=against is None)
        sentence = isolation_sentence(now)
        probe = now.isolation
        document["isolation"] = {
            "level": None if probe is None else probe.level,
            "features": [] if probe is None else list(probe.features),
            "gaps": [] if probe is None else list(probe.gaps),
            "said": sentence,
        }
        document["ledger"] = None if state is None else str(folder / "ledger.db")
    if against is None and isinstance(question, OfContract) and question.asked.held_out_cells:
        unseen = ", ".join(question.asked.held_out_cells)
        output.warn(
            f"without --champion the contract's held-out cells are not run ({unseen}): they are"
            " for a gain to confirm"
        )
    output.document(document)
    for line in lines(document):
        output.result(line)
    code = EXITS.get(document["verdict"], Exit.FAILED)
    if code is not Exit.OK:
        raise CommandEnds(code)


def _of_contract(path: Path) -> OfContract:
    read = contract_of(read_contract_file(path).fields, completed=False)
    if not isinstance(read, Contract):
        raise ContractError(f"{path}: {'; '.join(str(one) for one in read)}")
    return OfContract(read)


@contextmanager
def _state(kept: Path | None) -> Iterator[Path]:
    """Yield the rig's folder: a kept one, or one that goes with the command."""
    if kept is not None:
        yield kept
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-judge-") as name:
        yield Path(name) / "rig"


def lines(document: dict[str, Any]) -> list[str]:
    """Return what a person reads: verdict, reasons, values, isolation."""
    interval = document["interval"]
    gain = document["gain"]
    head = [document["verdict"]]
    if gain is not None:
        head.append(percent(gain))
        head.append(span(None if interval is None else tuple(interval)))
    told_lines = [" ".join(word for word in head if word)]
    told_lines += [f"  {visible(reason)}" for reason in document["reasons"]]
    for cell, metrics in document["cells"].items():
        for name, one in metrics.items():
            beside = "" if one.champion is None else f" (champion {one.champion:.6g})"
            value = "–" if one.candidate is None else f"{one.candidate:.6g}"
            told_lines.append(f"  {visible(cell)} {visible(name)} {value}{beside}")
    if document["marks"]:
        told_lines.append(f"  marks: {', '.join(document['marks'])}")
    told_lines.append(document["isolation"]["said"])
    if document["ledger"] is not None:
        told_lines.append(f"ledger: {document['ledger']}")
    return told_lines
