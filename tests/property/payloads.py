"""Hypothesis strategies for every event there is, made from the Structs themselves."""

from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from thermite.schema.event import ENVELOPES, Event

_LARGEST = 2**53 - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
wholes = st.integers(-_LARGEST, _LARGEST)
fractions = st.floats(allow_nan=False, allow_infinity=False)
anything = st.recursive(
    st.none() | st.booleans() | wholes | fractions | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def of(kind: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: C901, PLR0911, PLR0912 (one line a kind)
    """Return a strategy for values of a msgspec type."""
    match kind:
        case inspect.StructType(cls=struct, fields=fields):
            parts = {field.name: of(field.type) for field in fields}
            return st.builds(struct, **parts)
        case inspect.UnionType(types=types):
            return st.one_of(*(of(one) for one in types))
        case inspect.LiteralType(values=values):
            return st.sampled_from(list(values))
        case inspect.ListType(item_type=item, min_length=length):
            return st.lists(of(item), min_size=length or 0, max_size=3)
        case inspect.TupleType(item_types=items):
            return st.tuples(*(of(item) for item in items))
        case inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(of(key), of(value), max_size=3)
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType(ge=low, le=high):
            return wholes if low is high is None else st.integers(low, high)
        case inspect.FloatType(ge=low, le=high):
            return fractions if low is high is None else st.floats(low, high)
        case inspect.StrType(pattern=str(pattern)):
            return st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii"))
        case inspect.StrType(min_length=int(length)):
            return texts.filter(lambda text: len(text) >= length)
        case inspect.StrType():
            return texts
        case inspect.AnyType():
            return anything
        case inspect.RawType():
            return anything.map(lambda value: msgspec.Raw(msgspec.json.encode(value)))
        case _:
            raise AssertionError(f"no strategy for {kind}")


def events(tag: str) -> st.SearchStrategy[Event]:
    """Return a strategy for events of one type."""
    return of(inspect.type_info(ENVELOPES[tag]))
