"""The words in which a judge speaks: arms, stages, outcomes and verdicts.

Source: Kit manifest, Outcomes; the design page on judging, sections 3.8 and 3.9.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

Arm: TypeAlias = Literal["candidate", "champion"]
JudgeStage: TypeAlias = Literal[
    "screen", "confirm", "re_anchor", "selftest", "visible", "hidden", "single"
]
VerdictKind: TypeAlias = Literal[
    "promoted",
    "not_better",
    "regressed",
    "not_confirmed",
    "overfit",
    "guard_failed",
    "constraint_failed",
    "invalid",
    "crash_candidate",
    "crash_infra",
    "noisy_rig",
    "duplicate",
    "suspect",
    "cancelled",
    "valid",
    "goals_met",
    "goals_unmet",
]
Failure: TypeAlias = Literal[
    "build_failed",
    "build_outputs_missing",
    "build_outputs_refused",
    "build_killed",
    "source_refused",
    "run_killed",
    "run_exited",
    "run_outputs_refused",
    "check_failed",
    "value_refused",
]
Action: TypeAlias = Literal["continue", "pass", "stop", "hold"]

STAGE_BYTE: Final[Mapping[str, int]] = {"screen": 0, "confirm": 1, "re_anchor": 2, "selftest": 3}
"""The stage's byte in the hash that draws a block's order (judging, 3.1)."""

# Kit manifest, "Outcomes": a champion that fails means that the rig or the kit is broken.
_CANDIDATE: Final[Mapping[Failure, VerdictKind]] = {
    "build_failed": "invalid",
    "build_outputs_missing": "invalid",
    "build_outputs_refused": "invalid",
    "source_refused": "invalid",
    "build_killed": "crash_candidate",
    "run_killed": "crash_candidate",
    "run_exited": "crash_candidate",
    "run_outputs_refused": "invalid",
    "check_failed": "invalid",
    "value_refused": "invalid",
}
BLAME: Final[Mapping[Arm, Mapping[Failure, VerdictKind]]] = {
    "candidate": _CANDIDATE,
    "champion": dict.fromkeys(_CANDIDATE, "crash_infra"),
}
"""Which verdict a failure of an arm leads to."""

REMEMBERED_BUILDS: Final[frozenset[Failure]] = frozenset(
    {"build_failed", "build_outputs_missing", "build_outputs_refused", "source_refused"}
)
"""Failed builds that are remembered; one that was ended for a limit is built again."""

ANSWERS_A_DUPLICATE: Final[frozenset[VerdictKind]] = frozenset(
    {
        "promoted",
        "not_better",
        "regressed",
        "not_confirmed",
        "overfit",
        "guard_failed",
        "constraint_failed",
        "invalid",
        "suspect",
        "goals_met",
        "goals_unmet",
    }
)
"""Verdicts after which the same content is answered `duplicate` (judging, 3.9)."""

COUNTS_AGAINST: Final[frozenset[VerdictKind]] = frozenset(
    {
        "regressed",
        "overfit",
        "guard_failed",
        "constraint_failed",
        "invalid",
        "crash_candidate",
        "suspect",
        "goals_unmet",
    }
)
"""Verdicts that are the candidate's own fault."""
