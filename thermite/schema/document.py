"""Take a decoded document apart into a Struct, and name everything that is wrong with it.

msgspec stops at the first problem; an author wants them all. So the same annotations are
walked here: types, `Meta` ranges, unknown and missing fields at every level. Problems
carry the path of the place, and come out in the order in which the document holds them.
Source: kit requirements D02 to D05; the design page on the contract, first paragraph.
"""

import functools
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, cast

import msgspec
from msgspec import Meta

from thermite.schema.kit import Problem
from thermite.schema.strict_json import shown as quoted

Path: TypeAlias = tuple[str | int, ...]
"""Where something stands: names of fields and indices of lists, from the top."""
Rule: TypeAlias = Callable[[Mapping[str, Any]], Iterable[tuple[Path, str]]]
"""One rule across fields: from the document as it stands to its problems."""

MOST_INTEGER: Final = 2**53 - 1
"""Largest magnitude of an integer field: beyond it other readers round (D02)."""

MOST_PROBLEMS: Final = 1000
"""Most problems that one answer names; a document of 1 MiB can have a hundred thousand."""

_COMPARED: Final = 20  # unknown names that are compared with the known ones: that is slow
_SHOWN: Final = 60  # characters of a value that a message repeats: one line of a terminal
_BAD: Final = object()  # stands for a value that has a problem


class Document:
    """One document on its way to a Struct; `problems` fills while it is read.

    Args:
        null_is_absent: whether null may stand where a field's type has None; else it is
            never a value (D03).
    """

    def __init__(self, *, null_is_absent: bool) -> None:
        self.problems: dict[tuple[Path, str], None] = {}
        self.unnamed = 0
        self._null_is_absent = null_is_absent

    def refuse(self, path: Path, text: str) -> object:
        """Note a problem, each once and at most `MOST_PROBLEMS`, and return the mark for it."""
        if path == ("schema_version",):
            text += " (this build reads schema version 1)"
        text = printable(text)
        if len(self.problems) < MOST_PROBLEMS:
            self.problems[path, text] = None
        elif (path, text) not in self.problems:
            self.unnamed += 1
        return _BAD

    def read(self, kind: Any, value: object, path: Path = ()) -> object:  # noqa: ANN401 (a type)
        """Return the value as the annotated type, or a mark when it has a problem."""
        kind, metas = _bare(kind)
        if value is None and kind is not Any:
            return self._null(kind, path)
        options = _options(kind)
        if len(options) > 1 and all(isinstance(one, type) for one in options):
            return self._union(options, value, path)
        kind, inner_metas = _bare(options[0])
        return self._one(kind, metas + inner_metas, value, path)

    def _null(self, kind: object, path: Path) -> object:
        if self._null_is_absent and type(None) in typing.get_args(kind):
            return None
        return self.refuse(path, "null is not a value here: leave the field out")

    def _union(self, options: tuple[type, ...], value: object, path: Path) -> object:
        structs = [one for one in options if issubclass(one, msgspec.Struct)]
        if structs:
            return self._tagged(structs, value, path)
        if type(value) not in options:
            return self.refuse(path, f"needs {_either(options)}, and is {show(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            return self.refuse(path, "is a number beyond floating point")
        return value

    def _tagged(self, structs: list[type], value: object, path: Path) -> object:
        """Read one of several Structs by its tag; one without a tag is meant by none."""
        configs = [(one, cast("Any", one).__struct_config__) for one in structs]
        tag_field = next(one.tag_field for _, one in configs if one.tag_field)
        by_tag = {one.tag: struct for struct, one in configs}
        if not isinstance(value, dict):
            return self.refuse(path, f"needs an object, and is {show(value)}")
        if tag_field not in value and None not in by_tag:
            return self.refuse((*path, tag_field), f"missing: needs {_any_of(by_tag)}")
        tag = value.get(tag_field)
        struct = by_tag.get(tag) if isinstance(tag, str) or tag_field not in value else None
        if struct is None:
            known = _any_of(one for one in by_tag if one)
            return self.refuse((*path, tag_field), f"needs {known}, and is {show(tag)}")
        return self._struct(struct, value, path, tag_field)

    def _one(self, kind: Any, metas: tuple[Meta, ...], value: object, path: Path) -> object:  # noqa: ANN401
        origin = _origin(kind)
        if kind is Any:
            return value
        if origin is Literal:
            return self._literal(typing.get_args(kind), value, path)
        if origin in {list, dict}:
            return self._container(kind, metas, value, path)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return self._struct(kind, value, path)
        return self._scalar(kind, metas, value, path)

    def _literal(self, known: tuple[object, ...], value: object, path: Path) -> object:
        if any(type(one) is type(value) and one == value for one in known):
            return value
        return self.refuse(path, f"needs {_any_of(known)}, and is {show(value)}")

    def _scalar(self, kind: type, metas: tuple[Meta, ...], value: object, path: Path) -> object:
        fits = type(value) is kind or (kind is float and type(value) is int)
        if not fits:
            return self.refuse(path, f"needs {phrase(kind, metas)}, and is {show(value)}")
        if isinstance(value, float) and not math.isfinite(value):
            return self.refuse(path, "is a number beyond floating point")
        if type(value) is int and abs(value) > MOST_INTEGER:
            return self.refuse(path, f"is beyond 2^53 - 1: {show(value)}")
        if any(not _within(meta, value) for meta in metas):
            return self.refuse(path, f"needs {phrase(kind, metas)}, and is {show(value)}")
        if kind is float and type(value) is int:
            return float(value)
        return value

    def _container(self, kind: Any, metas: tuple[Meta, ...], value: object, path: Path) -> object:  # noqa: ANN401
        if type(value) is not _origin(kind):
            return self.refuse(path, f"needs {phrase(kind, metas)}, and is {show(value)}")
        if any(not _within(meta, value) for meta in metas):
            return self.refuse(path, f"needs {phrase(kind, metas)}, and has {_count(value)}")
        if isinstance(value, list):
            (inner,) = typing.get_args(kind)
            return self._all([self.read(inner, one, (*path, i)) for i, one in enumerate(value)])
        keys, inner = typing.get_args(kind)
        return self._mapping(keys, inner, cast("dict[str, object]", value), path)

    def _all(self, items: list[object]) -> object:
        return _BAD if any(one is _BAD for one in items) else items

    def _mapping(self, keys: object, inner: object, value: dict[str, object], path: Path) -> object:
        made: dict[str, object] = {}
        for name, one in value.items():
            if name == "":
                self.refuse((*path, name), "a name is not empty")
            if _origin(keys) is Literal:
                made[name] = self._literal(typing.get_args(keys), name, (*path, name))
            made[name] = self.read(inner, one, (*path, name))
        return _BAD if any(one is _BAD for one in made.values()) else made

    def _struct(self, kind: type, value: object, path: Path, tag_field: str = "") -> object:
        if not isinstance(value, dict):
            return self.refuse(path, f"needs an object, and is {show(value)}")
        fields = _fields(kind)
        for name in value:
            if name not in fields and name != tag_field:
                near = len(self.problems) < _COMPARED
                self.refuse((*path, name), _unknown(name, [*fields, tag_field] if near else []))
        made: dict[str, object] = {}
        for name, field in fields.items():
            if name in value:
                made[field.name] = self.read(field.type, value[name], (*path, name))
            elif field.required:
                made[field.name] = self.refuse(
                    (*path, name), f"missing: needs {_phrase(field.type)}"
                )
        return _BAD if any(one is _BAD for one in made.values()) else kind(**made)

    def in_order(self, whole: object) -> list[Problem]:
        """Return the problems as the document's reader meets them from the top."""
        indices: dict[int, dict[str, int]] = {}
        ordered = sorted(self.problems, key=lambda one: _position(whole, one[0], indices))
        named = [Problem(place=place(path), text=text) for path, text in ordered]
        if self.unnamed:
            named.append(Problem(place="", text=f"and {self.unnamed} more problems"))
        return named


@functools.cache
def _fields(kind: type) -> dict[str, msgspec.structs.FieldInfo]:
    return {one.encode_name: one for one in msgspec.structs.fields(kind)}


@functools.cache
def _bare(kind: Any) -> tuple[Any, tuple[Meta, ...]]:  # noqa: ANN401 (a type)
    """Return an annotated type without its ranges, and the ranges."""
    if typing.get_origin(kind) is not Annotated:
        return kind, ()
    inner, *metas = typing.get_args(kind)
    return inner, tuple(metas)


@functools.cache
def _origin(kind: Any) -> Any:  # noqa: ANN401 (a type)
    return typing.get_origin(kind)


@functools.cache
def _options(kind: Any) -> tuple[Any, ...]:  # noqa: ANN401 (a type)
    if typing.get_origin(kind) in {Union, types.UnionType}:
        return tuple(one for one in typing.get_args(kind) if one is not type(None))
    return (kind,)


def _within(meta: Meta, value: Any) -> bool:  # noqa: ANN401 (a number, a text or a container)
    return (
        (meta.ge is None or value >= meta.ge)
        and (meta.gt is None or value > meta.gt)
        and (meta.le is None or value <= meta.le)
        and (meta.lt is None or value < meta.lt)
        and (meta.min_length is None or len(value) >= meta.min_length)
        and (meta.max_length is None or len(value) <= meta.max_length)
        # D05: the whole text, so that no trailing line break slips past a `$`
        and (meta.pattern is None or re.fullmatch(meta.pattern.strip("^$"), value) is not None)
    )


_PHRASES: Final[Mapping[object, str]] = {
    int: "an integer",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def _phrase(kind: object) -> str:
    kind, metas = _bare(kind)
    inner, inner_metas = _bare(_options(kind)[0])
    return phrase(inner, metas + inner_metas)


def phrase(kind: object, metas: tuple[Meta, ...] = ()) -> str:
    """Return a type in words, as a message needs it: `an integer of at least 1`."""
    origin = typing.get_origin(kind)
    if origin is Literal:
        return _any_of(typing.get_args(kind))
    if kind is str and any(meta.min_length == 1 for meta in metas):
        return "text that is not empty"
    words = _PHRASES.get(origin or kind, "an object")
    if origin is list:
        inner, _ = _bare(typing.get_args(kind)[0])
        words = "a list of text" if inner is str else "a list"
    return words + "".join(_bounds(meta) for meta in metas)


def _bounds(meta: Meta) -> str:
    if meta.min_length == 1 and meta.max_length is None:
        return ", at least one"
    parts = [
        (meta.ge, "of at least {}"),
        (meta.gt, "above {}"),
        (meta.le, "of at most {}"),
        (meta.lt, "below {}"),
        (meta.min_length, "with at least {}"),
        (meta.max_length, "with at most {}"),
        (meta.pattern, "matching {}"),
    ]
    said = [text.format(bound) for bound, text in parts if bound is not None]
    return " " + " and ".join(said)


def _either(options: Iterable[type]) -> str:
    named = {int: "a number", float: "a number", str: "text", bool: "true or false"}
    return ", ".join(dict.fromkeys(named[one] for one in options))


def _any_of(known: Iterable[object]) -> str:
    words = [one if isinstance(one, str) else json.dumps(one) for one in known if one is not None]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"unknown field: did you mean {near[0]}?" if near else "unknown field: take it out"


def _count(value: object) -> str:
    return f"{len(cast('list[object]', value))}"


def show(value: object) -> str:
    """Return a value as a message may repeat it: JSON, one short line."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def printable(text: str) -> str:
    """Return a message on one line: what no terminal shows is written out, the rest stands."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def place(path: Path) -> str:
    """Return a path as messages have it: dotted, with list indices (D04)."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if part and part.isprintable() and len(part) <= _SHOWN else quoted(part)
            text += f".{name}" if text else name
    return text


def _position(whole: object, path: Path, indices: dict[int, dict[str, int]]) -> tuple[int, ...]:
    """Return where a path stands in the document; what is missing comes after what is there."""
    at: list[int] = []
    here = whole
    for part in path:
        if isinstance(here, dict) and isinstance(part, str):
            if id(here) not in indices:
                indices[id(here)] = {name: index for index, name in enumerate(here)}
            at.append(indices[id(here)].get(part, len(here)))
            here = here.get(part)
        elif isinstance(here, list) and isinstance(part, int) and part < len(here):
            at.append(part)
            here = here[part]
        else:
            break
    return tuple(at)
