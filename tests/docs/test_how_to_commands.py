"""Each command line of the how-to pages is one that `thermite` has, with options that it takes."""

import importlib
import re
import shlex
from pathlib import Path

import click
import pytest

from thermite.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = ["run-a-rig-you-can-prove", "rotate-a-key", "audit-a-ledger", "sign-and-send-an-order"]
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def lines(page: str) -> list[str]:
    text = (ROOT / "docs/how-to" / f"{page}.md").read_text()
    blocks = BLOCK.findall(text)
    return [line for block in blocks for line in block.splitlines() if line.startswith("thermite ")]


CASES = [(page, line) for page in PAGES for line in lines(page)]


@pytest.mark.parametrize(("page", "line"), CASES, ids=[line[9:60] for _, line in CASES])
def test_a_line_of_a_page_can_be_typed(page: str, line: str) -> None:
    assert page in PAGES
    words = shlex.split(line.partition(" > ")[0], comments=True)[1:]
    found: click.Command = importlib.import_module(COMMANDS[words[0]].module).command
    words = words[1:]
    while isinstance(found, click.Group):
        inner = found.get_command(click.Context(found), words[0])
        assert inner is not None, line
        found, words = inner, words[1:]
    found.make_context("thermite", words, resilient_parsing=False)


def test_a_line_that_nobody_could_type_is_found() -> None:
    module = importlib.import_module(COMMANDS["audit"].module)
    with pytest.raises(click.UsageError, match="No such option"):
        module.command.make_context("thermite", ["ledger.db", "--againts", "x"])
