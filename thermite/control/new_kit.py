"""A kit to start from: a whole one in a language, or one made of three commands.

Source: the reference page "Kit manifest"; kit requirements K-145, K-146 and D52.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from thermite.control.new_folder import filled
from thermite.errors import KitError, UsageError
from thermite.kit.manifest import MANIFEST, read_manifest
from thermite.schema.ids import is_name
from thermite.schema.kit import Kit
from thermite.shipped import shipped

LANGUAGES: Final = ("c", "python")
WRAPPER: Final = "result.py"
"""The script that turns a check's exit code into a result line; a described kit carries it."""


@dataclass(frozen=True)
class Description:
    """A kit in commands: argv lists, what the build makes, what build and run may read.

    cells: name to parameters; without any there is one, `all`, that has none.
    """

    build: Sequence[str]
    run: Sequence[str]
    check: Sequence[str]
    outputs: Sequence[str]
    build_copy: Sequence[str] = ()
    run_copy: Sequence[str] = ()
    target: str = "cpu"
    cells: Mapping[str, Mapping[str, int | float | str | bool]] = field(default_factory=dict)


def new_kit(name: str, language: str, folder: Path) -> None:
    """Write a working kit with known candidates into a folder that is not there yet.

    Raises:
        UsageError: a name that is none, an unknown language, or something is there.
    """
    _check_place(name, folder)
    if language not in LANGUAGES:
        raise UsageError(f"there is no kit in {language!r} to start from: {', '.join(LANGUAGES)}")
    with filled(folder):
        shutil.copytree(shipped(f"examples/kit-{language}"), folder, copy_function=shutil.copyfile)
        manifest = folder / MANIFEST
        text = manifest.read_text(encoding="utf-8")
        was = json.loads(text)["name"]
        text = text.replace(f'"name": "{was}"', f'"name": "{name}"')
        manifest.write_text(text, encoding="utf-8")


def describe_kit(name: str, described: Description, folder: Path) -> Kit:
    """Write a kit of three commands, whose check passes when it exits with 0.

    Raises:
        UsageError: a name that is none, or something is there.
        KitError: the commands make no valid kit; all problems.
    """
    _check_place(name, folder)
    text = json.dumps(manifest_of(name, described), indent=2, ensure_ascii=False) + "\n"
    found = read_manifest(text.encode())
    if not isinstance(found, Kit):
        raise KitError("; ".join(str(one) for one in found))
    with filled(folder):
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_text(text, encoding="utf-8")
        shutil.copyfile(shipped("examples/kit-described") / WRAPPER, folder / WRAPPER)
    return found


def manifest_of(name: str, described: Description) -> dict[str, Any]:
    """Return the manifest of a described kit: its time is measured, its check wrapped."""
    return {
        "schema_version": 1,
        "name": name,
        "target": described.target,
        "build": {
            "copy": list(described.build_copy),
            "command": list(described.build),
            "outputs": list(described.outputs),
        },
        "cells": {cell: dict(values) for cell, values in described.cells.items()} or {"all": {}},
        "run": {"copy": list(described.run_copy), "command": list(described.run)},
        "metrics": {"seconds": {"unit": "s", "from": "time"}},
        "check": {"command": ["python3", f"{{kit:{WRAPPER}}}", *described.check]},
    }


def _check_place(name: str, folder: Path) -> None:
    if not is_name(name):
        raise UsageError(
            f"{name!r} is no name of a kit: lower-case letters, digits, dot, hyphen and underscore,"
            " at most 64, a letter or digit first"
        )
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder} is there already: nothing is overwritten")
