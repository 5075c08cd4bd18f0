"""Groups about one noun: bare they list, and only the chosen command is imported."""

import sys

import click
from click.testing import CliRunner

from thermite.cli.commands import Subcommand
from thermite.cli.noun import LazyNounGroup

TABLE = {
    "list": Subcommand("tests.cli.noun_list", "what there is"),
    "wrong": Subcommand("tests.cli.not_there", "never imported"),
}


def group() -> click.Group:
    return LazyNounGroup("thing", table=TABLE, about="Things.")


def test_help_names_the_commands_and_imports_none() -> None:
    sys.modules.pop("tests.cli.noun_list", None)
    said = CliRunner().invoke(group(), ["--help"])
    assert said.exit_code == 0
    assert "what there is" in said.output
    assert "never imported" in said.output
    assert "tests.cli.noun_list" not in sys.modules


def test_a_bare_noun_lists() -> None:
    assert CliRunner().invoke(group(), []).output == "one\n"
    assert CliRunner().invoke(group(), ["list"]).output == "one\n"


def test_an_unknown_command_is_usage() -> None:
    assert CliRunner().invoke(group(), ["lsit"]).exit_code == 2
