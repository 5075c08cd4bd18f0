"""The spawner stands alone: the standard library and itself."""

import ast
import sys
from pathlib import Path

import thermite.rig.start

FILES = sorted(thermite.rig.start.FOLDER.glob("*.py"))


def _imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_the_spawner_imports_the_standard_library_alone() -> None:
    assert FILES
    for file in FILES:
        assert _imported(file) <= sys.stdlib_module_names, file.name
