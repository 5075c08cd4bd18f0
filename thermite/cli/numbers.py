"""Numbers of the command line that must be numbers."""

import math
from typing import Any, Final

import click


class Finite(click.FloatRange):
    """A fraction in a range; click's own takes a number that is none."""

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's own
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number, which is one."""
        found = float(super().convert(value, param, ctx))
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


FRACTION: Final = Finite(min=0, max=10, min_open=True)
"""A min_effect or a gain; ten times is `suspect_gain` (judging, 3.3)."""
