"""`thermite rig doctor`: which isolation this machine gives, and how to get the next level."""

from collections.abc import Iterator

import click
import msgspec

from thermite.cli.output import Output, with_output
from thermite.rig.doctor import Diagnosis, LevelTried, examine


@click.command("doctor", epilog="Example: thermite rig doctor --json")
@with_output
def command(output: Output) -> None:
    """Try every isolation level on this machine: what is blocked, what is open, what to do."""
    output.progress("trying every level; it takes some seconds")
    found = examine()
    output.document(msgspec.to_builtins(found))
    for line in lines(found):
        output.result(line)


def lines(found: Diagnosis) -> Iterator[str]:
    """Yield what a person reads."""
    yield f"a rig here isolates with {found.takes} (uid {found.uid}, {found.cpus} CPUs)"
    for one in found.levels:
        yield ""
        yield from _level_lines(one)
    if found.notes:
        yield ""
        yield from (f"note: {note}" for note in found.notes)


def _level_lines(one: LevelTried) -> Iterator[str]:
    if one.had:
        kept = "kit, ledger and keys are" if one.protected else "kit, ledger and keys are NOT"
        yield f"{one.level}: {', '.join(one.features) or 'nothing applied'}; {kept} out of reach"
    else:
        yield f"{one.level}: not to be had: {one.why_not}"
    still = sorted(name for name, result in one.canaries.items() if result != "blocked")
    blocked = len(one.canaries) - len(still)
    if one.canaries:
        yield f"  blocked: {blocked} of {len(one.canaries)} attempts"
    yield from (f"  {one.canaries[name]}: {name}" for name in still)
    yield from (f"  to do: {text}" for text in one.to_do)
