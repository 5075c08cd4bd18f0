"""The contract as somebody wrote it: a JSON or TOML file, read, encoded, and completed in place."""

import json
import math
import re
import stat
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from thermite.control.private_file import replace
from thermite.control.toml_text import text as toml_string
from thermite.errors import ContractError, NotFoundError, UsageError
from thermite.schema.contract import Project
from thermite.schema.contract_text import MOST_BYTES, MOST_LEVELS
from thermite.schema.strict_json import NotStrictJson, read
from thermite.schema.strict_toml import NotToml, read_toml

_TABLE: Final = re.compile(r"\s*\[")


@dataclass(frozen=True)
class ContractFile:
    """A contract's file, its text, and the document in it."""

    path: Path
    text: str
    fields: dict[str, Any]

    @property
    def is_toml(self) -> bool:
        """Whether the file is TOML; else it is JSON."""
        return self.path.suffix.lower() == ".toml"


def read_contract_file(path: Path) -> ContractFile:
    """Return the document of a contract file, unchecked but for what JSON can carry.

    Raises:
        UsageError: not there, or a suffix that is neither .toml nor .json.
        ContractError: not one strict document; the text says why.
    """
    if path.suffix.lower() not in {".toml", ".json"}:
        raise UsageError(f"{path} is named neither .toml nor .json: a contract is one of them")
    try:
        is_plain = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_plain = False
    if not is_plain:  # a pipe would be waited for
        raise NotFoundError(f"there is no contract file {path}")
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ContractError(f"{path} has more than {MOST_BYTES} bytes, and a contract has not")
    fields = _read_toml(path, raw) if path.suffix.lower() == ".toml" else _read_json(path, raw)
    return ContractFile(path, raw.decode(), fields)


def encoded(fields: dict[str, Any]) -> bytes:
    """Return a contract's document as the JSON that is signed and hashed.

    Raises:
        ContractError: longer than a contract may be.
    """
    raw = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(raw) > MOST_BYTES:
        raise ContractError(f"the contract has {len(raw)} bytes as JSON, and at most {MOST_BYTES}")
    return raw


def save_ids(file: ContractFile, project: Project) -> None:
    """Write the full ids of project and kit back into the contract's file.

    Raises:
        ContractError: the TOML is laid out so that its lines can't be replaced; the text
            gives the lines to write.
    """
    wanted = deepcopy(file.fields)
    wanted["project"]["commit"] = project.commit
    if project.kit is not None:
        wanted["project"]["kit"] = {"repo": project.kit.repo, "commit": project.kit.commit}
    if wanted == file.fields:
        return
    if file.is_toml:
        text = _edited_toml(file, project)
        if _meaning(text) != wanted:
            raise ContractError(
                f"{file.path} can't be completed by itself: write under [project] the lines"
                f" {'; '.join(_lines(project))}"
            )
    else:
        text = json.dumps(wanted, ensure_ascii=False, indent=2) + "\n"
    replace(file.path, text.encode(), mode=stat.S_IMODE(file.path.stat().st_mode))


def _meaning(text: str) -> dict[str, Any] | None:
    """Return what an edited contract says; None where it is no TOML any more."""
    try:
        return read_toml(text.encode(), most_levels=MOST_LEVELS)
    except NotToml:
        return None


def _read_json(path: Path, raw: bytes) -> dict[str, Any]:
    try:
        found = read(raw, most_bytes=MOST_BYTES, most_levels=MOST_LEVELS)
    except NotStrictJson as error:
        raise ContractError(f"{path} is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ContractError(f"{path} is no JSON object, and a contract is one")
    return found


def _read_toml(path: Path, raw: bytes) -> dict[str, Any]:
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ContractError(f"{path} starts with a byte-order mark: save it as UTF-8 without one")
    try:
        found = read_toml(raw, most_levels=MOST_LEVELS)
    except NotToml as error:
        raise ContractError(f"{path} is not valid TOML: {error}") from None
    _check_values(path, found)
    return found


def _check_values(path: Path, found: dict[str, Any]) -> None:
    """Refuse what TOML has and JSON has not: dates, infinities; walks without recursion."""
    waiting: list[tuple[str, object]] = [("", found)]
    while waiting:
        place, node = waiting.pop()
        if isinstance(node, dict):
            waiting += [(f"{place}.{key}", item) for key, item in node.items()]
        elif isinstance(node, list):
            waiting += [(f"{place}[{at}]", item) for at, item in enumerate(node)]
        elif isinstance(node, float) and not math.isfinite(node):
            raise ContractError(f"{path}: {place[1:]} is {node}, which is no number of a contract")
        elif not isinstance(node, (str, int, float)):
            kind = type(node).__name__
            raise ContractError(f"{path}: {place[1:]} is a {kind}: write it as text, in quotes")


def _lines(project: Project) -> list[str]:
    lines = [f"commit = {toml_string(project.commit)}"]
    if project.kit is not None:
        lines.append(f"kit = {_inline(project.kit.repo, project.kit.commit)}")
    return lines


def _inline(repo: str, commit: str) -> str:
    return f"{{ repo = {toml_string(repo)}, commit = {toml_string(commit)} }}"


def _edited_toml(file: ContractFile, project: Project) -> str:
    """Return the text with the ids in it; the caller checks that it means what it should."""
    lines = file.text.splitlines(keepends=True)
    _set(lines, "project", "commit", toml_string(project.commit))
    if project.kit is not None:
        repo, commit = project.kit.repo, project.kit.commit
        if _section(lines, "project.kit") is not None:
            _set(lines, "project.kit", "commit", toml_string(commit))
            _set(lines, "project.kit", "repo", toml_string(repo))
        else:
            _set(lines, "project", "kit", _inline(repo, commit))
    return "".join(lines)


def _section(lines: list[str], table: str) -> tuple[int, int] | None:
    """Return the first line after a table's head and the line after its last."""
    head = re.compile(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?\r?\n?")
    for at, line in enumerate(lines):
        if head.fullmatch(line):
            rest = range(at + 1, len(lines))
            return at + 1, next((n for n in rest if _TABLE.match(lines[n])), len(lines))
    return None


def _set(lines: list[str], table: str, key: str, value: str) -> None:
    section = _section(lines, table)
    if section is None:
        return
    first, end = section
    own = re.compile(rf"\s*{key}\s*=")
    at = next((n for n in range(first, end) if own.match(lines[n])), None)
    if at is None:
        lines.insert(first, f"{key} = {value}\n")
    else:
        comment = re.search(r"\s*#[^\"']*$", lines[at].rstrip("\r\n"))
        lines[at] = f"{key} = {value}{comment.group() if comment else ''}\n"
