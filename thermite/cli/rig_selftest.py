"""`thermite rig selftest`: what a rig can see, stored in its ledger; noise for the simulation."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from thermite.cli.arguments import FRACTION, KIT, TEXT, FilePath, Names, Whole
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, visible, with_output
from thermite.cli.pulse import pulse
from thermite.errors import NotFoundError, UsageError
from thermite.harness.judge_here import Question, as_it_stands
from thermite.harness.local_job import local_judge
from thermite.harness.rig_selftest import (
    Recorder,
    Setting,
    check_state,
    described,
    full_selftest,
    program_of,
)
from thermite.judge.job.selftest import BLOCKS
from thermite.kit.manifest import load_kit
from thermite.report.selftest import selftest_lines
from thermite.rig.settings_file import settings_in
from thermite.schema.rig_settings import RigSettings
from thermite.shipped import shipped

MOST_BLOCKS: Final = 2000
"""Counted blocks of one selftest: four hours of a cell of 2 s (our bound)."""
CONTROL_BLOCKS: Final = 16
"""What the rule needs at least for a known gain: 6 of screen, 10 of confirm (judging, 2.4)."""


@click.command("selftest", epilog="Example: thermite rig selftest --state /var/lib/thermite")
@click.option(
    "--state",
    metavar="DIR",
    type=FilePath(file_okay=False),
    help="The rig's folder, while nobody serves it; none: this machine, and nothing is kept.",
)
@click.option(
    "--kit",
    "kit_folder",
    metavar="DIR",
    type=KIT,
    help="The kit whose candidates/base runs; demo-cpu, a matrix product, by default.",
)
@click.option(
    "--cells", type=Names(), multiple=True, metavar="NAME[,NAME]…", help="Cells; all by default."
)
@click.option(
    "--metric", type=TEXT, metavar="NAME", help="What is measured; the kit's only metric."
)
@click.option("--min-effect", type=FRACTION, metavar="FRACTION", help="The least gain that counts.")
@click.option(
    "--blocks",
    type=Whole(BLOCKS["full"], MOST_BLOCKS),
    default=BLOCKS["full"],
    show_default=True,
    help="Of the program against itself.",
)
@click.option(
    "--record",
    metavar="FILE",
    type=FilePath(dir_okay=False),
    help="A new file for the runs: noise for thermite judge simulate.",
)
@with_output
def command(
    output: Output,
    *,
    state: Path | None,
    kit_folder: Path | None,
    cells: tuple[tuple[str, ...], ...],
    metric: str | None,
    min_effect: float | None,
    blocks: int,
    record: Path | None,
) -> None:
    """Measure a program against itself, and say how small a gain this rig sees.

    Blocks of one and the same build as both arms, then a known gain that the rule must
    promote. Exit 5 when the rig is found biased or insensitive: it takes no assignment then.
    """
    if record is not None and record.exists():
        raise UsageError(f"{record} is there already: name a new file")
    folder = kit_folder or shipped("kits/demo-cpu")
    program, kit = program_of(folder), load_kit(folder)
    wanted = [name for names in cells for name in names]
    question, recorder = Question(wanted, metric, None, min_effect), Recorder()
    with (
        _state(state) as (where, settings),
        as_it_stands(folder) as plain_kit,
        local_judge(where, plain_kit, kit.name, settings) as judge,
    ):
        setting = Setting.now(is_realtime=settings.realtime_runs)
        least = blocks + CONTROL_BLOCKS
        with pulse(output, f"measuring {kit.name} against itself, at least {least} blocks"):
            found = full_selftest(judge, kit, program, question, recorder, count=blocks)
        unfit = judge.bench.book.state.unfit
    recorded = record is not None and recorder.write(
        record, described(found, kit, wanted or list(kit.cells), setting)
    )
    if record is not None and not recorded:
        output.warn(f"{record} was not written: too few runs were undisturbed")
    document: dict[str, Any] = {
        "grade": found.grade,
        "sees": found.sees,
        "biased": found.biased,
        "insensitive": found.insensitive,
        "blocks": len(found.blocks),
        "figures": found.figures,
        "recorded": str(record) if recorded else None,
    }
    output.document(document)
    for line in selftest_lines(found):
        output.result(visible(line))
    if unfit is not None:
        raise CommandEnds(Exit.WRONG_STATE)


@contextmanager
def _state(kept: Path | None) -> Iterator[tuple[Path, RigSettings]]:
    """Yield the rig's folder and settings, or a folder that goes with the command."""
    if kept is not None:
        if not kept.is_dir():
            raise NotFoundError(f"there is no folder {kept}")
        settings = settings_in(kept)
        check_state(kept)
        yield kept, settings or RigSettings()
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-selftest-") as name:
        yield Path(name) / "rig", RigSettings()
