"""What may be written on the command line: texts, paths and numbers.

Click's own types take an empty text for a path (which is then the current folder), bytes that
are no UTF-8 for a text (which no order and no JSON can hold), `nan` for a number, and a number
that no clock and no JSON can hold. These refuse them, each before anything is done, and every
argument and option of every command is of one of these types, a choice or a flag.
"""

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from thermite.schema.contract import LIMITS, WHOLE_LIMITS
from thermite.shipped import shipped, shipped_names

if TYPE_CHECKING:
    _Type = click.ParamType[Any]
else:  # click 8.1 has no generic one
    _Type = click.ParamType

SHOWN: Final = 60
"""Most characters of a refused value that are shown; what follows is cut."""
MOST_WHOLE: Final = 2**53 - 1
"""The largest whole number that every reader of JSON takes as it is (RFC 8259, 6)."""
MOST_SECONDS: Final = 366 * 86_400.0
"""The longest wait, s: a year, for which every clock of the system is good (our bound)."""
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?\d{1,16}", re.ASCII)
_EMPTY: Final = "it is empty: give a value, or leave it out"


def shown(text: str) -> str:
    """Return a refused value as messages quote it."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


class Text(_Type):
    """Text in UTF-8 that is more than blanks.

    Args:
        most: characters at most; None: as many as the system lets through.
    """

    name = "text"

    def __init__(self, most: int | None = None) -> None:
        self.most = most

    def convert(
        self,
        value: str,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the text."""
        if not value.strip():
            self.fail(_EMPTY, param, ctx)
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail(f"{shown(value)} is not UTF-8", param, ctx)
        if self.most is not None and len(value) > self.most:
            said = f"it has {len(value)} characters, and at most {self.most} are taken"
            self.fail(f"{said}: shorten it", param, ctx)
        return value


class Place(_Type):
    """A path of any bytes, an address or a revision: text of at least one character."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text."""
        if not value:
            self.fail(_EMPTY, param, ctx)
        return value


class FilePath(click.Path):
    """A path of at least one character."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - click's own
        # Whether it can be read says who reads it: an inbox can be entered and not listed.
        super().__init__(path_type=Path, readable=False, **options)

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - likewise
        """Return the path."""
        if not value:
            self.fail(_EMPTY, param, ctx)
        return super().convert(value, param, ctx)


class KitFolder(FilePath):
    """A kit's folder; or the bare name of a kit that we ship, where nothing here has that name."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:  # noqa: ANN401 - likewise
        """Return the path."""
        if isinstance(value, str) and value in shipped_names("kits") and not Path(value).exists():
            return shipped(f"kits/{value}")
        return super().convert(value, param, ctx)


class Number(_Type):
    """A finite number, written with the digits 0 to 9.

    Args:
        least, most: its bounds, both taken; above: a lower bound that is not taken.
    """

    name = "number"

    def __init__(
        self, *, most: float, least: float | None = None, above: float | None = None
    ) -> None:
        self.least, self.above, self.most = least, above, most

    def convert(
        self,
        value: str | float,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number."""
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            self.fail(f"{shown(value)} is no number", param, ctx)
        found = float(value)
        if not self._fits(found):
            self.fail(f"{shown(str(value))} is not {self.range()}", param, ctx)
        return found

    def range(self) -> str:
        """Return the bounds in words."""
        lower = f"above {self.above:g}" if self.least is None else f"at least {self.least:g}"
        return f"{lower} and at most {self.most:.15g}"

    def _fits(self, found: float) -> bool:
        lower = found >= self.least if self.least is not None else found > (self.above or 0)
        return math.isfinite(found) and lower and found <= self.most


class Whole(_Type):
    """A whole number, written with the digits 0 to 9; least and most are taken."""

    name = "integer"

    def __init__(self, least: int, most: int = MOST_WHOLE) -> None:
        self.least, self.most = least, most

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        """Return the number."""
        if isinstance(value, str) and not _WHOLE.fullmatch(value):
            self.fail(f"{shown(value)} is no whole number {self.range()}", param, ctx)
        found = int(value)
        if not self.least <= found <= self.most:
            self.fail(f"{found} is not {self.range()}", param, ctx)
        return found

    def range(self) -> str:
        """Return the bounds in words."""
        return f"from {self.least} to {self.most}"


class Limit(_Type):
    """A limit of a budget and its new value, as `attempts=80`."""

    name = "limit"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, float]:
        """Return the limit's name and the number."""
        if not isinstance(value, str):
            return cast("tuple[str, float]", value)  # click converts again what it has converted
        name, equals, number = value.partition("=")
        if name not in LIMITS or not equals:
            there = ", ".join(LIMITS)
            self.fail(f"{shown(value)} is no limit: write attempts=80; there are {there}", param)
        if name in WHOLE_LIMITS:
            return name, Whole(1).convert(number, param, ctx)
        return name, Number(above=0, most=MOST_WHOLE).convert(number, param, ctx)


class Names(_Type):
    """Names with commas between them, none of them empty."""

    name = "names"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, ...]:
        """Return the names, in their order."""
        if not isinstance(value, str):
            return cast("tuple[str, ...]", value)  # click converts again what it has converted
        names = tuple(TEXT.convert(value, param, ctx).split(","))
        if not all(names):
            self.fail(f"{shown(value)} has an empty name", param, ctx)
        return names


TEXT: Final = Text()
PLACE: Final = Place()
PATH: Final = FilePath()
KIT: Final = KitFolder()
SECONDS: Final = Number(least=0, most=MOST_SECONDS)
FRACTION: Final = Number(above=0, most=10)
"""A gain; ten times is `suspect_gain` (judging, 3.3)."""
