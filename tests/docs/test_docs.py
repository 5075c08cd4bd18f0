"""The documents tell the truth about the tree and the command line."""

import re
from pathlib import Path

import pytest

from tests.cli.tree import LEAVES
from thermite.cli.exits import Exit

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("requirements/*.md")])
COMMAND_LINE = (ROOT / "docs/reference/command-line.md").read_text()
LINK = re.compile(r"\[[^\]]*\]\(([^)#]+)(?:#[^)]*)?\)")


DOCUMENTED = sorted(" ".join(path) for path in LEAVES)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_command_has_its_part_in_the_reference(name: str) -> None:
    assert re.search(rf"^### `thermite {name}\b", COMMAND_LINE, re.MULTILINE)


def test_the_reference_has_no_command_that_is_not_there() -> None:
    headings = re.findall(r"^### `thermite ([a-z -]+?)(?: [A-Z\[].*)?`", COMMAND_LINE, re.MULTILINE)
    assert sorted(headings) == DOCUMENTED


def test_the_reference_lists_every_exit_code() -> None:
    table = re.findall(r"^\| (\d+) \|", COMMAND_LINE, re.MULTILINE)
    assert [int(code) for code in table] == [int(code) for code in Exit]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(index.read_text())}
    pages = {page for page in ROOT.glob("docs/**/*.md") if page != index}
    assert pages <= linked


def test_every_room_stands_in_contributing() -> None:
    table = (ROOT / "CONTRIBUTING.md").read_text()
    rooms = {path.parent for path in ROOT.glob("thermite/*/__init__.py")}
    rooms |= {ROOT / name for name in ("supervisor", "kits", "examples", "benchmarks")}
    for room in rooms:
        assert f"`{room.relative_to(ROOT)}" in table, room.name


def test_ci_finds_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    assert re.search(r"<!-- the test command -->\n```sh\nmake test\n```\n", readme)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_schema_that_a_page_names_is_there(page: Path) -> None:
    for target in re.findall(r"\bschema/[a-z]+\.schema\.json", page.read_text()):
        assert (ROOT / target).is_file(), target
