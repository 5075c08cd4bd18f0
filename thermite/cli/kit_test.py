"""`thermite kit test`: a kit's known candidates, judged here and now."""

import tempfile
from pathlib import Path
from typing import Final

import click

from thermite.cli.arguments import KIT, TEXT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.kit_check import kit_folder
from thermite.cli.output import Output, visible, with_output
from thermite.cli.pulse import pulse
from thermite.harness.judge_here import as_it_stands
from thermite.harness.known_candidates import KnownCandidates, Trial, Tried
from thermite.harness.local_job import local_judge
from thermite.report.campaign import isolation_sentence, percent, short

NARROWEST: Final = 16
"""Characters of the column of names when all of them are short."""


@click.command("test", epilog="Example: thermite kit test smoke-cpu")
@click.argument("folder", metavar="DIR", type=KIT)
@click.option(
    "--only", multiple=True, type=TEXT, metavar="NAME", help="A candidate; may be repeated."
)
@with_output
def command(output: Output, folder: Path, only: tuple[str, ...]) -> None:
    """Judge every known candidate of the kit in DIR and hold it against its expect.toml."""
    known = KnownCandidates(kit_folder(folder))
    names = known.chosen(only)
    with (
        as_it_stands(folder) as plain,
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-kit-test-") as state,
        local_judge(Path(state) / "rig", plain, known.kit.name) as judge,
    ):
        trial = Trial(KnownCandidates(plain), judge)
        now = [f"starting a rig for {known.kit.name}"]

        def tell(what: str) -> None:
            now.append(what)
            output.progress(what)

        with pulse(output, lambda: now[-1], at_once=False):
            tried = trial.run(names, tell)
        isolation = isolation_sentence(judge.bench.book.state)
    for text in trial.warnings:
        output.warn(text)
    good = all(one.ok for one in tried)
    output.document({"ok": good, "isolation": isolation, "candidates": tried})
    width = max([NARROWEST, *(len(visible(one.name)) for one in tried)])
    for one in tried:
        output.result(line(one, width))
    output.result(isolation)
    if not good:
        raise CommandEnds(Exit.FAILED)


def line(one: Tried, width: int = NARROWEST) -> str:
    """Return one candidate as a line of the table; width: of the names, characters."""
    mark = "skip" if one.skipped else "ok  " if one.ok else "FAIL"
    found = one.verdict or "–"
    wanted = "" if one.ok else f"  expected {' or '.join(one.expected)}"
    why = visible(short([one.reason]))
    name = f"{visible(one.name):<{width}}"
    head = f"{mark}  {name} {found:<16} {percent(one.gain):>9} {one.seconds:7.1f} s"
    return f"{head}{wanted}  {why}"
