"""JSON Schemas (2020-12) of what people and programs write, made from the Structs.

They describe shapes for editors and for other languages. What a schema can't say (rules across
fields, no key twice) is said by the readers alone, so every document that we take fits its
schema, and not the other way round. Source: https://json-schema.org/draft/2020-12.
"""

import typing
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from thermite.schema.command import BODY_OF, CommandPayload
from thermite.schema.contract import Contract
from thermite.schema.document import MOST_INTEGER
from thermite.schema.event import ENVELOPES
from thermite.schema.kit import Kit

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: Final[Mapping[object, dict[str, Any]]] = {
    str: {"type": "string"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": -MOST_INTEGER, "maximum": MOST_INTEGER},
    list: {"type": "array"},
    dict: {"type": "object"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    msgspec.Raw: {},
}
_KEYWORDS: Final = (
    ("ge", "minimum"),
    ("gt", "exclusiveMinimum"),
    ("le", "maximum"),
    ("lt", "exclusiveMaximum"),
    ("pattern", "pattern"),
)


class _Writer:
    """Writes one document; each Struct once, under `$defs`."""

    def __init__(self, *, nullable: bool) -> None:
        self.definitions: dict[str, Any] = {}
        self._nullable = nullable

    def shape(self, kind: Any) -> dict[str, Any]:  # noqa: ANN401 (a type)
        """Return the schema of an annotated type."""
        metas: list[Meta] = []
        while typing.get_origin(kind) is Annotated:
            kind, *found = typing.get_args(kind)
            metas += [one for one in found if isinstance(one, Meta)]
        made = self._bare(kind)
        for meta in metas:
            made = made | _limits(meta, made)
        return made

    def _bare(self, kind: Any) -> dict[str, Any]:  # noqa: ANN401
        if kind in _PLAIN:
            return dict(_PLAIN[kind])
        origin = typing.get_origin(kind)
        if origin is not None:
            return self._generic(origin, typing.get_args(kind))
        return self._reference(kind)

    def _generic(self, origin: Any, args: tuple[Any, ...]) -> dict[str, Any]:  # noqa: ANN401
        if origin is Literal:
            return {"enum": list(args)}
        if origin in {list, tuple}:
            return {"type": "array", "items": self.shape(args[0])}
        if origin is dict:
            keys, inner = args
            named = {} if keys is str else {"propertyNames": self.shape(keys)}
            return {"type": "object", "additionalProperties": self.shape(inner), **named}
        return self._union(args)

    def _union(self, options: tuple[Any, ...]) -> dict[str, Any]:
        kinds = [one for one in options if one is not type(None)]
        if set(kinds) == {int, float, str, bool}:  # a cell's value keeps all its digits
            return {"type": ["number", "string", "boolean"]}
        shapes = [self.shape(one) for one in kinds]
        if self._nullable and len(kinds) < len(options):
            shapes.append({"type": "null"})
        return shapes[0] if len(shapes) == 1 else {"anyOf": shapes}

    def _reference(self, kind: Any) -> dict[str, Any]:  # noqa: ANN401
        if hasattr(kind, "__supertype__"):  # a NewType is written as what it is made of
            return self.shape(kind.__supertype__)
        name = kind.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # so that a Struct that holds itself comes to an end
            self.definitions[name] = self.struct(kind)
        return {"$ref": f"#/$defs/{name}"}

    def struct(self, kind: Any) -> dict[str, Any]:  # noqa: ANN401
        """Return the schema of a Struct: exactly its fields."""
        config = kind.__struct_config__
        properties: dict[str, Any] = {}
        required: list[str] = []
        if config.tag_field:
            properties[config.tag_field] = {"const": config.tag}
            required.append(config.tag_field)
        for field in msgspec.structs.fields(kind):
            properties[field.encode_name] = self.shape(field.type) | _default(field)
            if field.required:
                required.append(field.encode_name)
        return {
            "type": "object",
            "description": " ".join((kind.__doc__ or "").split()),
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }


def _limits(meta: Meta, made: Mapping[str, Any]) -> dict[str, Any]:
    found = {word: getattr(meta, name) for name, word in _KEYWORDS}
    of_what = "Items" if made.get("type") == "array" else "Length"
    found |= {f"min{of_what}": meta.min_length, f"max{of_what}": meta.max_length}
    return {word: bound for word, bound in found.items() if bound is not None}


def _default(field: msgspec.structs.FieldInfo) -> dict[str, Any]:
    if field.default is not msgspec.NODEFAULT:
        return {"default": field.default}
    if field.default_factory is not msgspec.NODEFAULT:
        return {"default": msgspec.to_builtins(field.default_factory())}
    return {}


def _whole(title: str, made: dict[str, Any], writer: _Writer) -> dict[str, Any]:
    name = title.partition(" ")[0].lower()
    head = {"$schema": DIALECT, "$id": f"{name}.schema.json", "title": title}
    return {**head, **made, "$defs": dict(sorted(writer.definitions.items()))}


def kit_schema() -> dict[str, Any]:
    """Return the schema of kit.json."""
    writer = _Writer(nullable=False)
    return _whole("Kit manifest", writer.struct(Kit), writer)


def contract_schema() -> dict[str, Any]:
    """Return the schema of a contract, JSON or TOML."""
    writer = _Writer(nullable=True)
    return _whole("Contract", writer.struct(Contract), writer)


def command_schema() -> dict[str, Any]:
    """Return the schema of a signed command's payload: each type with its body."""
    writer = _Writer(nullable=True)
    made = writer.struct(CommandPayload)
    bodies = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"properties": {"body": writer.shape(body)}},
        }
        for name, body in BODY_OF.items()
    ]
    return _whole("Command payload", {**made, "allOf": bodies}, writer)


def event_schema() -> dict[str, Any]:
    """Return the schema of a ledger's events: the envelope of each type with its payload."""
    writer = _Writer(nullable=True)
    kinds = [writer.shape(one) for one in ENVELOPES.values()]
    return _whole("Event", {"oneOf": kinds}, writer)


SCHEMAS: Final = {
    "kit": kit_schema,
    "contract": contract_schema,
    "command": command_schema,
    "event": event_schema,
}
"""Every schema that is written to `schema/<name>.schema.json`."""
