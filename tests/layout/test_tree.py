"""The tree keeps the house's rules that no linter holds."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for room in ("thermite", "supervisor", "tests", "benchmarks", "tools")
    for path in (ROOT / room).rglob("*.py")
    if "__pycache__" not in path.parts
)
SAYS_NOTHING = {
    "base",
    "common",
    "core",
    "data",
    "handler",
    "helper",
    "helpers",
    "info",
    "manager",
    "misc",
    "service",
    "types",
    "util",
    "utils",
}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_named_for_nothing(path: Path) -> None:
    names = {part.removesuffix(".py") for part in path.relative_to(ROOT).parts}
    assert not names & SAYS_NOTHING


def test_every_room_opens_with_its_theory_of_operation() -> None:
    for room in sorted((ROOT / "thermite").iterdir()):
        if room.is_dir() and any(room.glob("*.py")):
            text = (room / "__init__.py").read_text()
            assert text.startswith('"""'), room.name
            assert len(text.splitlines()) >= 5, room.name


def test_git_ignores_no_room_of_the_code() -> None:
    for line in (ROOT / ".gitignore").read_text().splitlines():
        assert line.startswith(("/", "!/", "__pycache__/", "*.egg-info/")), line
