"""The base of all our Structs: frozen, keyword-only, refusing unknown fields.

Beside it the numbers that they hold, with bounds that each decode keeps.
"""

from typing import Annotated, Final, TypeAlias, dataclass_transform

import msgspec

MOST_WHOLE: Final = 2**53 - 1
"""Largest whole number that every JSON reader keeps (RFC 8259, 6)."""
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-MOST_WHOLE, le=MOST_WHOLE)]
Real: TypeAlias = Annotated[float, msgspec.Meta(ge=-MOST_WHOLE, le=MOST_WHOLE)]
"""A float that stays within the same bounds, since a whole number may stand for one."""


# Said once more for type checkers: they don't hand a base's options down.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frozen value whose JSON form has exactly its fields."""
