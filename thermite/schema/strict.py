"""The base of all our Structs: frozen, keyword-only, refusing unknown fields."""

from typing import dataclass_transform

import msgspec


# Said once more for type checkers: they don't hand a base's options down.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value whose JSON form has exactly its fields."""
