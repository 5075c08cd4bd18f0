"""The base of all our Structs: frozen, keyword-only, refusing unknown fields."""

import msgspec


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value whose JSON form has exactly its fields."""
