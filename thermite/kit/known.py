"""Read a kit's known candidates: which there are, and what is expected of each.

Source: kit requirements, 20.
"""

import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec

from thermite.kit.fit import fit_problems
from thermite.kit.folder import MOST_ENTRIES, Kind, entries_below, is_linked, kind_of
from thermite.schema.contract import Budget, Contract, Project
from thermite.schema.contract_rules import bound_problems
from thermite.schema.document import Document
from thermite.schema.document import Path as Place
from thermite.schema.expectation import Expectation, Instead, KnownContract
from thermite.schema.ids import is_entry_name
from thermite.schema.kit import Kit, Problem, TimeMetric
from thermite.schema.strict_toml import NotToml, read_toml

CANDIDATES: Final = "candidates"
BASE: Final = "base"
CONTRACT: Final = "contract.toml"
MOST_BYTES: Final = 64 << 10
"""Longest expect.toml or contract.toml beside the candidates; ours have 200 bytes."""

DELETES: Final = "delete.txt"
CHANGES: Final = ("change.patch", DELETES)
"""Files that say what a candidate changes, beside its folder `files`."""
MOST_CANDIDATES: Final = 1000
"""Known candidates of one kit: to try them all takes hours by then (our figure)."""

FILES: Final = "files"
"""A candidate's folder of files that are laid over the tree."""
_NO_FILE: Final = "is not a plain file"
_LINK: Final = "is a link, or lies behind one: a kit holds its candidates itself"
_T = TypeVar("_T")


class Known(NamedTuple):
    """What `candidates/` says; a file with problems is missing here, and never an empty one.

    names: of all candidates but `base`; expectations: by name; contract: None when it can't
    be read; problems: everything that keeps `kit test` from trying them.
    """

    names: list[str]
    expectations: dict[str, Expectation]
    contract: KnownContract | None
    problems: list[str]


def read_known(kit: Kit, folder: Path) -> Known:
    """Return what a kit's `candidates/` says, with all that is wrong with it at once."""
    linked = [place for place in (CANDIDATES, f"{CANDIDATES}/{BASE}") if is_linked(folder, place)]
    if linked:
        return Known([], {}, None, [f"{linked[0]} {_LINK}"])
    if kind_of(folder / CANDIDATES) not in {"missing", "folder"}:
        return Known([], {}, None, [f"{CANDIDATES} is no folder: it holds a folder for each"])
    names = known_names(folder)
    if len(names) > MOST_CANDIDATES:
        return Known([], {}, None, [f"{CANDIDATES} holds more than {MOST_CANDIDATES}: keep fewer"])
    problems: list[str] = []
    expectations: dict[str, Expectation] = {}
    if (folder / CANDIDATES).is_dir():
        problems += _folder_problems(folder, names)
    others = set(names)
    for name in names:
        place = f"{CANDIDATES}/{name}/expect.toml"
        read = _expected(folder, place, others - {name})
        if isinstance(read, Expectation):
            expectations[name] = read
        else:
            problems += [f"{place}: {one}" for one in read]
        problems += _name_problems(name)
        problems += _change_problems(folder, name)
    problems += _circles(expectations)
    contract, wrong = _judged_on(kit, folder)
    if names or kind_of(folder / CANDIDATES / CONTRACT) != "missing":
        problems += wrong
    return Known(names, expectations, contract, problems)


def filled_in(kit: Kit, known: KnownContract) -> dict[str, Any]:
    """Return the fields of the candidates' contract, defaults filled in from the kit.

    Without an objective, and with more or fewer metrics than one, there is none.
    """
    fields: dict[str, Any] = msgspec.to_builtins(known)
    fields["cells"] = known.cells or [c for c in kit.cells if c not in known.held_out_cells]
    if known.objective is None and len(kit.metrics) == 1:
        name, metric = next(iter(kit.metrics.items()))
        direction = "min" if isinstance(metric, TimeMetric) else "max"
        fields["objective"] = {"primary": {"metric": name, "direction": direction}}
    return fields


def local_problems(kit: Kit, fields: Mapping[str, Any]) -> list[str]:
    """Return what keeps a kit from judging one candidate here on such fields of a contract."""
    contract = msgspec.convert(
        {
            "schema_version": 1,
            "name": kit.name,
            "campaign": "hill_climb",
            "task": "judge here and now",
            "project": msgspec.to_builtins(Project(repo="local", commit="0" * 40)),
            **fields,
        },
        Contract,
    )
    one = msgspec.structs.replace(contract, budget=Budget(attempts=1))
    return fit_problems(kit, one, kit.target)


def known_names(kit: Path) -> list[str]:
    """Return the names of a kit's known candidates, without `base`, in their order.

    One more than `MOST_CANDIDATES` stands for all that would follow.
    """
    folder = kit / CANDIDATES
    if not folder.is_dir():
        return []
    folders = (one.name for one in folder.iterdir() if one.is_dir())
    named = (name for name in folders if name not in {BASE, CONTRACT})
    return sorted(islice(named, MOST_CANDIDATES + 1))


def read_expectation(raw: bytes, names: set[str]) -> Expectation | list[Problem]:
    """Return what an expect.toml expects, or all its problems.

    Args:
        names: the other candidates' names.
    """
    return _read(raw, Expectation, lambda whole: _expectation_problems(whole, names))


def read_known_contract(raw: bytes) -> KnownContract | list[Problem]:
    """Return what the candidates are judged on, or all problems of that file."""
    return _read(raw, KnownContract, bound_problems)


def case_here(expectation: Expectation, applied: set[str]) -> Expectation | Instead | None:
    """Return the case that means something on a rig that applied these, or None: skip it."""
    cases: list[Expectation | Instead] = [expectation, *expectation.instead]
    return next((case for case in cases if set(case.needs) <= applied), None)


def _expected(folder: Path, place: str, names: set[str]) -> Expectation | list[Problem]:
    path = folder / place
    if is_linked(folder, place):
        return [Problem(place="", text=_LINK)]
    kind = kind_of(path)
    if kind == "missing":
        return [Problem(place="", text="missing: say what is expected of the candidate")]
    if kind != "file":
        return [Problem(place="", text=_NO_FILE)]
    return read_expectation(_start(path), names)


def _change_problems(folder: Path, name: str) -> Iterator[str]:
    """Yield what says a candidate's change and is no file, be it a link to one."""
    kinds = {part: kind_of(folder / CANDIDATES / name / part) for part in (*CHANGES, FILES)}
    for part, kind in kinds.items():
        place = f"{CANDIDATES}/{name}/{part}"
        if part == FILES and kind not in {"missing", "folder"}:
            yield f"{place} is not a folder: it holds the files that are laid over the tree"
        elif part != FILES and kind not in {"missing", "file"}:
            yield f"{place} {_NO_FILE}"
    if not _changes_something(folder / CANDIDATES / name, kinds):
        yield (
            f"{CANDIDATES}/{name} changes nothing: give it a change.patch, or {FILES}/ and"
            " delete.txt"
        )


def _changes_something(candidate: Path, kinds: Mapping[str, Kind]) -> bool:
    if any(kinds[part] not in {"missing", "folder"} for part in kinds if part != DELETES):
        return True
    deletes = kinds[DELETES] == "file" and _start(candidate / DELETES).strip()
    laid_over = entries_below(candidate / FILES, most=MOST_ENTRIES)
    return bool(deletes) or any(kind_of(one) != "folder" for one in laid_over)


def _name_problems(name: str) -> Iterator[str]:
    """Yield why a candidate can't be tried under its folder's name."""
    is_ref = ".." not in name and not name.endswith((".", ".lock"))  # git-check-ref-format(1)
    if not (is_entry_name(name) and is_ref):
        yield (
            f"{CANDIDATES}/{ascii(name)[1:-1]}: a candidate's name has A-Z, a-z, 0-9, '.', '_' and"
            " '-', at most 128 of them, begins with a letter or digit, has no '..' and does not"
            " end in '.' or '.lock': rename the folder"
        )


def _folder_problems(folder: Path, names: Collection[str]) -> Iterator[str]:
    if not (folder / CANDIDATES / BASE).is_dir():
        yield f"{CANDIDATES}/{BASE} is missing: it is the champion of the others"
    if not names:
        yield (
            f"{CANDIDATES} holds no candidate beside {BASE}: add a folder for each, with"
            " expect.toml and its change, or take the folder out"
        )


def _circles(expectations: Mapping[str, Expectation]) -> Iterator[str]:
    """Yield candidates whose champion's champion, and so on, is never `base`."""
    for name in expectations:
        seen: list[str] = []
        here = name
        while here in expectations and here not in seen:
            seen.append(here)
            here = expectations[here].against
        if here in seen:
            round_trip = " -> ".join([*seen, here])
            yield f"{CANDIDATES}/{name}/expect.toml: against: never comes to {BASE}: {round_trip}"


def _judged_on(kit: Kit, folder: Path) -> tuple[KnownContract | None, list[str]]:
    """Return contract.toml, and its problems with those of the part that can be read."""
    place = f"{CANDIDATES}/{CONTRACT}"
    path = folder / place
    if is_linked(folder, place):
        return None, [f"{place} {_LINK}"]
    kind = kind_of(path)
    if kind not in {"missing", "file"}:
        return None, [f"{place} {_NO_FILE}"]
    raw = _start(path) if kind == "file" else b""
    read = read_known_contract(raw)
    whole = isinstance(read, KnownContract)
    said = [] if isinstance(read, KnownContract) else [str(one) for one in read]
    rest = read if isinstance(read, KnownContract) else _readable(raw)
    if rest is not None:
        said += _unfit(kit, rest, named=whole)
    contract = read if isinstance(read, KnownContract) else None
    return contract, [f"{place}: {text}" for text in said]


def _unfit(kit: Kit, known: KnownContract, *, named: bool) -> Iterator[str]:
    fields = filled_in(kit, known)
    if fields["objective"] is None and named:
        yield f"the kit has {len(kit.metrics)} metrics: name the objective"
    elif not fields["cells"]:
        yield "no cell is left to measure: name one in cells"
    yield from local_problems(kit, fields)


def _readable(raw: bytes) -> KnownContract | None:
    """Return the fields that can be read of a contract with problems; None without its cells."""
    try:
        whole = read_toml(raw)
    except NotToml:
        return None
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(KnownContract):
        if field.name in whole:
            apart = Document(null_is_absent=False)
            fields[field.name] = apart.read(field.type, whole[field.name])
            if apart.problems:
                del fields[field.name]
    lists = {"cells", "held_out_cells"} & set(whole)
    return KnownContract(**fields) if lists <= set(fields) else None


def _start(path: Path) -> bytes:
    """Return a file's bytes, or one more than are ever read."""
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)


def _read(raw: bytes, kind: type[_T], rule: Any) -> _T | list[Problem]:  # noqa: ANN401
    if len(raw) > MOST_BYTES:
        said = f"has more than {MOST_BYTES} bytes, and no more are read"
        return [Problem(place="", text=said)]
    try:
        whole = read_toml(raw)
    except NotToml as why:
        return [Problem(place="", text=f"is not valid TOML: {why}")]
    document = Document(null_is_absent=False)
    made = document.read(kind, whole)
    for place, text in rule(whole):
        document.refuse(place, text)
    return document.in_order(whole) if document.problems else cast("_T", made)


def _expectation_problems(whole: dict[str, Any], names: set[str]) -> Iterator[tuple[Place, str]]:
    against = whole.get("against", BASE)
    if isinstance(against, str) and against not in {BASE, "none", *names}:
        yield ("against",), f"{against} is no other candidate of this kit"
    instead = whole.get("instead")
    cases: list[tuple[Place, dict[str, Any]]] = [((), whole)]
    cases += [
        (("instead", at), one)
        for at, one in enumerate(instead if isinstance(instead, list) else [])
        if isinstance(one, dict)
    ]
    for here, case in cases:
        yield from _case_problems(case, here)


def _case_problems(case: dict[str, Any], here: Place) -> Iterator[tuple[Place, str]]:
    reason, gain, verdict = case.get("reason"), case.get("gain"), case.get("verdict")
    if isinstance(reason, str):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # of what another Python may read otherwise
                re.compile(reason)
        except (re.error, Warning, RecursionError, OverflowError) as why:
            yield (*here, "reason"), f"is no regular expression: {why}"
    if gain is not None and isinstance(verdict, list) and "promoted" not in verdict:
        yield (*here, "gain"), "only a promotion has a gain: expect promoted, or take it out"
    numbers = (
        [one for one in gain if isinstance(one, int | float)] if isinstance(gain, list) else []
    )
    if len(numbers) == len(("low", "high")) and numbers[0] > numbers[1]:
        yield (*here, "gain"), f"the least, {numbers[0]}, is above the most, {numbers[1]}"
