"""Read kit.json: a `Kit`, or everything that is wrong with it.

The shape is in `schema.kit`; here stand the rules across fields. They look at the
document as it was written, so that a field of the wrong type hides no other problem.
Source: the reference page "Kit manifest"; kit requirements 2 to 7, D01 to D21.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from thermite.errors import KitError
from thermite.kit.placeholder import placeholders
from thermite.schema.document import Document, Rule
from thermite.schema.document import Path as Place
from thermite.schema.kit import Kit, Problem
from thermite.schema.mcp_rules import server_problems, tidy
from thermite.schema.strict_json import NotStrictJson, read

MANIFEST: Final = "kit.json"
MOST_BYTES: Final = 1 << 20
MOST_LEVELS: Final = 64
"""Longest and deepest kit.json (D01)."""

KIT_PATH: Final = "a kit path is relative, normalized and inside the kit"
OUTPUT_PATH: Final = "an output path is relative, normalized and inside the source tree"

Found = Iterator[tuple[Place, str]]


def read_manifest(raw: bytes) -> Kit | list[Problem]:
    """Return the kit, or all its problems in the manifest's order."""
    try:
        whole = read(raw, most_bytes=MOST_BYTES, most_levels=MOST_LEVELS)
    except NotStrictJson as why:
        return [Problem(place="", text=f"kit.json is not valid JSON: {why}")]
    if not isinstance(whole, dict):
        kind = "a list" if isinstance(whole, list) else "one bare value"
        said = f"kit.json is not valid JSON: it needs to be one object, and is {kind}"
        return [Problem(place="", text=said)]
    document = Document(null_is_absent=False)
    kit = document.read(Kit, whole)
    for rule in _RULES:
        for place, text in rule(whole):
            document.refuse(place, text)
    if document.problems:
        return document.in_order(whole)
    return _each_once(cast("Kit", kit))


def load_kit(folder: Path) -> Kit:
    """Read the kit.json of an exported kit.

    Raises:
        KitError: it is missing, no plain file, or has problems; the text joins them all.
    """
    read_here = read_manifest(manifest_bytes(folder))
    if isinstance(read_here, Kit):
        return read_here
    problems = "; ".join(str(one) for one in read_here)
    raise KitError(f"the kit's kit.json is not valid: {problems}")


def manifest_bytes(folder: Path) -> bytes:
    """Return the bytes of a folder's kit.json, at most one more than may be read.

    Raises:
        KitError: it is missing, unreadable, or not a plain file.
    """
    path = folder / MANIFEST
    try:
        found = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise KitError(
            f"{folder} has no kit.json at its root: a kit is a folder with one"
        ) from None
    except OSError as why:
        said = os.strerror(why.errno or 0)
        raise KitError(f"{path} is not a plain file that can be read ({said})") from None
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise KitError(f"{path} is not a plain file")
    with os.fdopen(found, "rb") as file:
        return file.read(MOST_BYTES + 1)


def kit_path_problem(path: str) -> str | None:
    """Return why a path is no kit path, or None.

    Source: Kit manifest, Rules across fields.
    """
    return None if _is_plain(path) else KIT_PATH


def _is_plain(path: str) -> bool:
    parts = path.split("/")
    return "\0" not in path and not any(part in {"", ".", ".."} for part in parts)


def _texts(whole: Mapping[str, Any], section: str, field: str) -> list[tuple[int, str]]:
    """Return the texts of a list in a section, with their indices, whatever else is there."""
    inner = whole.get(section)
    items = inner.get(field) if isinstance(inner, dict) else None
    return _only_text(items)


def _only_text(items: object) -> list[tuple[int, str]]:
    found = enumerate(items if isinstance(items, list) else [])
    return [(at, one) for at, one in found if isinstance(one, str)]


def _objects(whole: Mapping[str, Any], field: str) -> dict[str, dict[str, Any]]:
    """Return the objects of an object of objects, whatever else is there."""
    inner = whole.get(field)
    named = inner.items() if isinstance(inner, dict) else ()
    return {name: one for name, one in named if isinstance(one, dict)}


def _kit_path_rule(whole: Mapping[str, Any]) -> Found:
    for section in ("build", "run"):
        for at, path in _texts(whole, section, "copy"):
            if not _is_plain(path):
                yield (section, "copy", at), KIT_PATH


def _output_path_rule(whole: Mapping[str, Any]) -> Found:
    for at, path in _texts(whole, "build", "outputs"):
        if not _is_plain(path):
            yield ("build", "outputs", at), OUTPUT_PATH


def _command_rule(whole: Mapping[str, Any]) -> Found:
    for section in ("build", "run", "check"):
        for at, word in _texts(whole, section, "command"):
            if at == 0 and word == "":
                yield (section, "command", at), "a program's name is not empty"
            if "\0" in word:
                yield (section, "command", at), "no program can be given a NUL character"


def _run_copy_rule(whole: Mapping[str, Any]) -> Found:
    copied = [path for _, path in _texts(whole, "run", "copy")]
    for at, word in _texts(whole, "run", "command"):
        for one in placeholders([word]):
            if one.name == "kit" and not _is_copied(one.below, copied):
                said = f"{one.written} is not in run.copy (a run cannot read the kit)"
                yield ("run", "command", at), said


def _is_copied(below: str, copied: list[str]) -> bool:
    """Return whether a path is an entry or lies below one, by whole parts (D14, D15)."""
    if below == "":
        return bool(copied)
    return _is_plain(below) and any(f"{below}/".startswith(f"{entry}/") for entry in copied)


def _parameter_rule(whole: Mapping[str, Any]) -> Found:
    for cell, parameters in _objects(whole, "cells").items():
        for name, value in parameters.items():
            if any(one in name for one in "=\n\r\0"):
                yield ("cells", cell, name), "a parameter's name has no =, line break or NUL"
            if name == "":
                yield ("cells", cell, name), "a name is not empty"
            if isinstance(value, str) and any(one in value for one in "\n\r\0"):
                yield ("cells", cell, name), "a parameter's text has no line break or NUL"


def _verifier_rule(whole: Mapping[str, Any]) -> Found:
    verifiers = whole.get("verifiers")
    known = set(verifiers) if isinstance(verifiers, dict) else set()
    cells = whole.get("cells")
    for name, one in _objects(whole, "verifiers").items():
        for at, cell in _only_text(one.get("cells")):
            if isinstance(cells, dict) and cell not in cells:
                yield ("verifiers", name, "cells", at), f"{cell} is not a cell of this kit"
        for at, gate in _only_text(one.get("requires")):
            if gate == name or gate not in known:
                said = f"{gate} is not another verifier of this kit"
                yield ("verifiers", name, "requires", at), said


def _cycle_rule(whole: Mapping[str, Any]) -> Found:
    """Take verifiers away whose gates are all gone; what is left when nothing goes is a loop."""
    gates = {
        name: {gate for _, gate in _only_text(one.get("requires")) if gate != name}
        for name, one in _objects(whole, "verifiers").items()
    }
    needed_by: dict[str, list[str]] = {}
    waiting: dict[str, int] = {}
    for name, its in gates.items():
        real = its & gates.keys()
        waiting[name] = len(real)
        for gate in real:
            needed_by.setdefault(gate, []).append(name)
    ready = [name for name, count in waiting.items() if count == 0]
    done = 0
    while ready:
        done += 1
        for name in needed_by.get(ready.pop(), []):
            waiting[name] -= 1
            if waiting[name] == 0:
                ready.append(name)
    if done < len(gates):
        yield ("verifiers",), "verifier gates form a cycle"


def _server_rule(whole: Mapping[str, Any]) -> Found:
    return server_problems(whole.get("mcp_servers"), ("mcp_servers",))


_RULES: Final[tuple[Rule, ...]] = (
    _kit_path_rule,
    _output_path_rule,
    _command_rule,
    _run_copy_rule,
    _parameter_rule,
    _verifier_rule,
    _cycle_rule,
    _server_rule,
)


def _each_once(kit: Kit) -> Kit:
    """Return the kit with repeats taken once, in their first place (D12)."""
    replace = msgspec.structs.replace
    build = replace(kit.build, copy=_unique(kit.build.copy), outputs=_unique(kit.build.outputs))
    verifiers = {
        name: replace(one, cells=_unique(one.cells), requires=_unique(one.requires))
        for name, one in kit.verifiers.items()
    }
    return replace(
        kit,
        build=build,
        run=replace(kit.run, copy=_unique(kit.run.copy)),
        verifiers=verifiers,
        mcp_servers=[tidy(one) for one in kit.mcp_servers],
    )


def _unique(items: list[str]) -> list[str]:
    return list(dict.fromkeys(items))
