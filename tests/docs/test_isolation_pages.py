"""The pages on isolation, limits and setting up a rig say what the code does."""

import importlib
import re
import shlex
from pathlib import Path

import click
import pytest

from tests.attack.candidates import ATTACKS
from thermite.cli.commands import COMMANDS
from thermite.harness.rig import SELFTEST
from thermite.rig import refusal_words, start
from thermite.rig.doctor import GAPS, LEVELS
from thermite.schema.kit import BuildSection, CheckSection, RunSection
from thermite.spawner.level import BEST_FIRST
from thermite.spawner.weighing import MOST_ENTRIES, MOST_LEVELS

DOCS = Path(__file__).parents[2] / "docs"
LIMITS = (DOCS / "reference/limits-and-outcomes.md").read_text()
SET_UP = (DOCS / "how-to/set-up-a-rig.md").read_text()
LEVELS_PAGE = (DOCS / "reference/isolation.md").read_text()
ISOLATION = (DOCS / "explanation/isolation-inside-a-rig.md").read_text()


def commands(page: str) -> list[list[str]]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("argv", commands(SET_UP), ids=" ".join)
def test_a_command_of_the_page_is_read_by_the_command_line(argv: list[str]) -> None:
    assert argv[0] == "thermite"
    words = argv[1:]
    found: click.Command = importlib.import_module(COMMANDS[words.pop(0)].module).command
    context = click.Context(found)
    while isinstance(found, click.Group):
        inner = found.get_command(context, words.pop(0))
        assert inner is not None
        found = inner
    found.make_context(found.name, words)  # raises what a wrong command would say


def test_every_variable_of_the_page_is_read() -> None:
    source = Path(start.__file__).read_text()
    isolating = {"THERMITE_ISOLATION", "THERMITE_UID_RANGE", "THERMITE_RUN_CPUS"}
    assert set(re.findall(r"THERMITE_[A-Z_]+", SET_UP)) == isolating | {SELFTEST}
    assert all(name in source for name in isolating)


def test_every_level_that_can_be_had_is_in_the_table() -> None:
    for level in LEVELS:
        assert f"| `{level}` |" in ISOLATION
        assert f"| `{level}` |" in LEVELS_PAGE


def test_levels_are_tried_in_the_order_that_the_page_tells() -> None:
    assert ", ".join(f"`{name}`" for name in BEST_FIRST) in LEVELS_PAGE.replace("\n", " ")


def test_every_gap_that_the_doctor_knows_is_told() -> None:
    told = set(re.findall(r"`(\w+)`", LEVELS_PAGE))
    assert GAPS.keys() <= told


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        pytest.param("time", ("build", "run", "check"), id="time"),
        pytest.param("memory", ("build", "run"), id="memory"),
        pytest.param("disk", ("build", "run"), id="disk"),
    ],
)
def test_the_limits_are_the_kits_defaults(row: str, cells: tuple[str, ...]) -> None:
    field = {"time": "timeout_s", "memory": "rss_mib", "disk": "disk_mib"}[row]
    sections = {
        "build": BuildSection(command=["x"], outputs=["x"]),
        "run": RunSection(command=["x"]),
        "check": CheckSection(command=["x"]),
    }
    (line,) = re.findall(rf"^\| {row}, `{field}` \|(.*)$", LIMITS, re.MULTILINE)
    told = [text.strip() for text in line.split("|")]
    for text, name in zip(told, cells, strict=False):
        assert text.split()[0].replace(",", "") == str(getattr(sections[name], field))


def test_entries_and_levels_are_the_samplers() -> None:
    assert f"| files and folders | {MOST_ENTRIES:,} |" in LIMITS
    assert f"| nesting | {MOST_LEVELS} levels |" in LIMITS


def test_every_refusal_of_an_output_stands_in_the_page() -> None:
    for kind in ("link", "pipe", "hard_link", "owner", "unreadable"):
        text = (
            refusal_words.refusal("<path>", kind, 7)
            .replace(" 7 ", " <n> ")
            .replace("(7)", "(<uid>)")
        )
        assert f"`{text}`" in LIMITS
    for kind in ("entries", "levels", "bytes"):
        text = refusal_words.refusal("<path>", kind, 3 << 20).replace(str(3 << 20), "<n>")
        assert f"`{text.replace('(3 MiB)', '(<n> MiB)')}`" in LIMITS


def test_the_table_of_ends_is_what_the_attacks_find() -> None:
    codes = {attack.name: attack.code for attack in ATTACKS}
    rows = {"aborts": "B6-abort", "reads or writes where nothing is": "B6-null-write"}
    rows |= {"runs over its stack": "B6-stack-overflow", "kills itself": "B6-kills-itself"}
    rows |= {"divides by zero": "B6-arithmetic", "ends itself with SIGTERM": "B6-terminates-itself"}
    rows |= {"uses memory whose file has no such part": "B6-bus-error"}
    rows |= {"executes an instruction that this processor lacks": "B3-illegal-instruction"}
    for text, name in rows.items():
        assert f"| {text} | {codes[name]} |" in LIMITS
