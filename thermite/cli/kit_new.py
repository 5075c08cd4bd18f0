"""`thermite kit new`: a kit to start from."""

import json
import shlex
from pathlib import Path

import click

from thermite.cli.arguments import PATH, TEXT
from thermite.cli.output import Output, with_output
from thermite.control.new_kit import LANGUAGES, Description, describe_kit, new_kit
from thermite.errors import UsageError


@click.command("new", epilog="Example: thermite kit new my-kit --language c")
@click.argument("name", type=TEXT)
@click.option("--dir", "folder", type=PATH, help="Where; else ./NAME.")
@click.option("--language", type=click.Choice(LANGUAGES), help="A whole kit with candidates.")
@click.option("--describe", is_flag=True, help="A kit of three commands: --build, --run, --check.")
@click.option(
    "--build", type=TEXT, metavar="COMMAND", help="Builds a candidate, in its source tree."
)
@click.option(
    "--output", "outputs", type=TEXT, metavar="PATH", multiple=True, help="What the build makes."
)
@click.option(
    "--run", "run", type=TEXT, metavar="COMMAND", help="One run, with {build}, {params}, {out}."
)
@click.option("--check", type=TEXT, metavar="COMMAND", help="Exits with 0 when {out} is right.")
@click.option(
    "--build-copy", type=TEXT, metavar="PATH", multiple=True, help="A kit file for the build."
)
@click.option("--run-copy", type=TEXT, metavar="PATH", multiple=True, help="A kit file for runs.")
@click.option(
    "--cell", "cells", type=TEXT, metavar="NAME=JSON", multiple=True, help="A cell's parameters."
)
@click.option(
    "--target", type=TEXT, default="cpu", show_default=True, help="What the kit measures on."
)
@with_output
def command(  # noqa: PLR0913 (one argument for each option)
    output: Output,
    *,
    name: str,
    folder: Path | None,
    language: str | None,
    describe: bool,
    build: str | None,
    outputs: tuple[str, ...],
    run: str | None,
    check: str | None,
    build_copy: tuple[str, ...],
    run_copy: tuple[str, ...],
    cells: tuple[str, ...],
    target: str,
) -> None:
    """Write a kit that works into a new folder: a whole one in a language, or a described one.

    A described kit is made of commands alone. Its check is wrapped: exit code 0 passes, any
    other fails with the end of what it said.
    """
    into = folder or Path(name)
    if describe == (language is not None):
        raise UsageError("give either --language or --describe")
    if language is not None:
        new_kit(name, language, into)
    else:
        needed = {"--build": build, "--output": outputs, "--run": run, "--check": check}
        missing = [option for option, given in needed.items() if not given]
        if missing:
            raise UsageError(f"--describe needs {', '.join(missing)}: see thermite kit new --help")
        described = Description(
            build=_words("--build", build or ""),
            run=_words("--run", run or ""),
            check=_words("--check", check or ""),
            outputs=outputs,
            build_copy=build_copy,
            run_copy=run_copy,
            target=target,
            cells=_cells(cells),
        )
        describe_kit(name, described, into)
    output.document({"kit": str(into), "name": name})
    output.result(f"made  {into}")
    where = shlex.quote(str(into))
    output.result(f"next  thermite kit check {where} --strict")
    if language is None:
        output.result(f"then  known candidates in {into}/candidates, and thermite kit test {where}")
    else:
        output.result(f"then  thermite kit test {where}")


def _words(option: str, text: str) -> list[str]:
    """Return a command as an argv list; quotes as in a shell, and nothing else of one."""
    try:
        return shlex.split(text)
    except ValueError as why:
        raise UsageError(f"{option}: {why}: {text!r}") from None


def _cells(texts: tuple[str, ...]) -> dict[str, dict[str, int | float | str | bool]]:
    found: dict[str, dict[str, int | float | str | bool]] = {}
    for text in texts:
        name, parameters = _cell(text)
        if name in found:
            raise UsageError(f"--cell names {name!r} twice: a cell has one set of parameters")
        found[name] = parameters
    return found


def _cell(text: str) -> tuple[str, dict[str, int | float | str | bool]]:
    name, equals, given = text.partition("=")
    try:
        parameters = json.loads(given) if equals else None
    except (ValueError, RecursionError):
        parameters = None
    if not isinstance(parameters, dict):
        raise UsageError(f'--cell {text!r}: write it as NAME={{"n": 100}}')
    return name, parameters
