"""What a kit's author expects of a known candidate: `expect.toml`, and what all are judged on.

Source: kit requirements, 20.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from thermite.schema.contract import Guard, HardConstraint, Judging, NotEmpty, Objective
from thermite.schema.strict import Strict
from thermite.schema.verdict import VerdictKind

Need: TypeAlias = Literal[
    "protected", "users", "namespaces", "landlock", "no_network", "cpu", "cuda-gpu"
]
"""What a rig must have applied, or be, for a case to mean anything."""
Verdicts: TypeAlias = Annotated[list[VerdictKind], Meta(min_length=1)]
Range: TypeAlias = Annotated[list[float], Meta(min_length=2, max_length=2)]


class Instead(Strict):
    """What is expected when a need of the case above is missing."""

    verdict: Verdicts
    reason: str | None = None
    gain: Range | None = None
    needs: list[Need] = msgspec.field(default_factory=list)


class Expectation(Strict):
    """What is expected of one known candidate.

    verdict: any of these; against: `base`, another candidate, or `none`; reason: a regular
    expression; gain: least and most, fractions; needs: what the rig must have applied.
    """

    verdict: Verdicts
    against: NotEmpty = "base"
    reason: str | None = None
    gain: Range | None = None
    needs: list[Need] = msgspec.field(default_factory=list)
    instead: list[Instead] = msgspec.field(default_factory=list)


class KnownContract(Strict):
    """`candidates/contract.toml`: cells None is all there are, objective None the only metric."""

    cells: list[str] | None = None
    held_out_cells: list[str] = msgspec.field(default_factory=list)
    objective: Objective | None = None
    guards: list[Guard] = msgspec.field(default_factory=list)
    hard_constraints: list[HardConstraint] = msgspec.field(default_factory=list)
    judging: Judging = msgspec.field(default_factory=Judging)
