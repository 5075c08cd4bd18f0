"""The rules across a contract's fields, on the document as it was written.

A rule reads only what it can use, so that a field of the wrong type hides no other problem.
`cell_problems` is also held against contracts that are Structs already (`kit.fit`).
Source: the design page on the contract; judging, 3.3, Validation.
"""

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from thermite.schema.contract import Judging
from thermite.schema.document import Path
from thermite.schema.ids import is_commit_id
from thermite.schema.mcp_rules import server_problems

Found = Iterator[tuple[Path, str]]

KINDS_OF: Final[Mapping[str, frozenset[str]]] = {
    "cells": frozenset({"hill_climb"}),
    "held_out_cells": frozenset({"hill_climb", "goal"}),
    "objective": frozenset({"hill_climb"}),
    "guards": frozenset({"hill_climb"}),
    "hard_constraints": frozenset({"hill_climb"}),
    "monitor_only": frozenset({"hill_climb"}),
    "goals": frozenset({"goal", "research"}),
    "models": frozenset({"hill_climb", "goal"}),
    "judging": frozenset({"hill_climb", "goal"}),
}
"""Fields that not every kind of campaign has (the design page on the contract, `kinds`)."""

_SLACK: Final = 1e-9  # on the log of evidence, far below the 1e-6 of judging, 3.2


def whole_problems(whole: Mapping[str, Any], *, completed: bool) -> Found:
    """Yield what is wrong across the fields of a contract.

    Args:
        completed: whether commits must be full ids and the kit be there, as in a signed copy.
    """
    yield from _project_problems(whole, completed=completed)
    yield from _kind_problems(whole, completed=completed)
    yield from cell_problems(whole)
    yield from bound_problems(whole)
    yield from _goal_problems(whole)
    yield from server_problems(whole.get("mcp_servers"), ("mcp_servers",))


def _project_problems(whole: Mapping[str, Any], *, completed: bool) -> Found:
    project = _object(whole.get("project"))
    for at, pattern in _texts(project.get("editable")):
        if any(one in pattern for one in "\n\r\0"):
            yield ("project", "editable", at), "a pattern has no line break or NUL"
    if not completed:
        return
    for path, holder in (
        (("project", "commit"), project),
        (("project", "kit", "commit"), _object(project.get("kit"))),
    ):
        commit = holder.get("commit")
        if isinstance(commit, str) and commit and not is_commit_id(commit):
            yield path, "needs a full commit id: 40 or 64 lower-case hex digits"


def _kind_problems(whole: Mapping[str, Any], *, completed: bool) -> Found:
    kind = whole.get("campaign")
    if kind not in {"hill_climb", "goal", "research"}:
        return
    for field, kinds in KINDS_OF.items():
        if kind not in kinds and not _is_default(field, whole.get(field)):
            yield (field,), f"a {kind} contract has no {field}: take it out"
    if kind != "research" and whole.get("mcp_servers"):
        yield ("mcp_servers",), f"a {kind} contract names no MCP servers: its kit does"
    yield from _needs(whole, str(kind))
    kit = _object(whole.get("project")).get("kit")
    if kind == "research" and kit is not None:
        yield ("project", "kit"), "a research contract has no kit: take it out"
    if kind != "research" and kit is None and completed and "project" in whole:
        yield ("project", "kit"), f"missing: a {kind} contract names its kit"


def _is_default(field: str, value: object) -> bool:
    if field == "judging" and isinstance(value, dict):
        default = {name: getattr(Judging(), name) for name in Judging.__struct_fields__}
        return value == {name: default.get(name) for name in value}
    return value is None or value in ([], {})


def _needs(whole: Mapping[str, Any], kind: str) -> Found:
    """Yield what a kind of campaign can't be without."""
    if kind == "hill_climb" and whole.get("cells", []) == []:
        yield ("cells",), "missing: a hill_climb contract names at least one cell"
    if kind == "hill_climb" and whole.get("objective") is None:
        yield ("objective",), "missing: a hill_climb contract says what is improved"
    if kind == "goal" and whole.get("goals", []) == []:
        yield ("goals",), "missing: a goal contract has at least one goal"


def cell_problems(whole: Mapping[str, Any]) -> Found:
    """Yield cells, weights and guards that do not go together in a hill climb."""
    if whole.get("campaign") != "hill_climb":
        return
    cells = {cell for _, cell in _texts(whole.get("cells"))}
    held_out = _texts(whole.get("held_out_cells"))
    for field in ("cells", "held_out_cells"):
        named: set[str] = set()
        for at, cell in _texts(whole.get(field)):
            if cell in named:
                yield (field, at), f"{field} names cell {cell} twice"
            named.add(cell)
    for at, cell in held_out:
        if cell in cells:
            yield ("held_out_cells", at), f"held_out_cells names cell {cell}, which cells names too"
    objective = _object(whole.get("objective"))
    yield from _weight_problems(objective.get("weights"), cells)
    primary = _object(objective.get("primary")).get("metric")
    yield from _guard_problems(whole.get("guards"), cells, primary)
    measured = cells.union(cell for _, cell in held_out)
    for at, one in _objects(whole.get("hard_constraints")):
        for cell_at, cell in _texts(one.get("cells")):
            if cell not in measured:
                said = f"a hard constraint names cell {cell}, which is in neither list of cells"
                yield ("hard_constraints", at, "cells", cell_at), said


def _weight_problems(weights: object, cells: AbstractSet[str]) -> Found:
    if not isinstance(weights, dict):
        return
    for cell in weights:
        if cell not in cells:
            said = f"objective.weights names cell {cell}, which is not in cells"
            yield ("objective", "weights", cell), said
    for cell in dict.fromkeys(cells):
        if cell not in weights:
            yield ("objective", "weights"), f"objective.weights has no weight for cell {cell}"


def _guard_problems(guards: object, cells: AbstractSet[str], primary: object) -> Found:
    for at, one in _objects(guards):
        if isinstance(primary, str) and one.get("metric") == primary:
            said = f"a guard names metric {primary}, which is the objective's own"
            yield ("guards", at, "metric"), said
        for cell_at, cell in _texts(one.get("cells")):
            if cell not in cells:
                said = f"a guard names cell {cell}, which is not in cells"
                yield ("guards", at, "cells", cell_at), said


def bound_problems(whole: Mapping[str, Any]) -> Found:
    """Yield bounds that leave nothing between them, and hard constraints without one."""
    for at, one in _objects(whole.get("hard_constraints")):
        low, high = one.get("min"), one.get("max")
        if low is None and high is None:
            yield ("hard_constraints", at), "needs min or max, or both"
        elif _above(low, high):
            yield ("hard_constraints", at, "min"), f"min {low} is above max {high}"
    judging = _object(whole.get("judging"))
    for few, many in (("min_blocks", "max_blocks"), ("confirm_min_blocks", "confirm_max_blocks")):
        low = judging.get(few, getattr(Judging(), few))
        high = judging.get(many, getattr(Judging(), many))
        if _above(low, high):
            yield ("judging", few), f"judging.{few} is {low}, and judging.{many} is {high}"


def _above(low: object, high: object) -> bool:
    numbers = [one for one in (low, high) if isinstance(one, int | float)]
    return len(numbers) == len((low, high)) and numbers[0] > numbers[1]


def _goal_problems(whole: Mapping[str, Any]) -> Found:
    seen: set[str] = set()
    for at, goal in _objects(whole.get("goals")):
        name = goal.get("id")
        if isinstance(name, str):
            if name in seen:
                yield ("goals", at, "id"), f"{name} stands twice"
            seen.add(name)
        verify = _object(goal.get("verify"))
        kind = verify.get("type")
        if whole.get("campaign") == "research" and kind in {"code", "metric_threshold"}:
            said = "a research contract has review goals only"
            yield ("goals", at, "verify", "type"), said
        if kind == "metric_threshold":
            given = [one for one in ("min", "max") if verify.get(one) is not None]
            if len(given) != 1:
                has = "both" if given else "neither"
                yield ("goals", at, "verify"), f"needs min or max, and has {has}"


def evidence_problems(judging: Judging, attempts: int) -> Found:
    """Yield stages that can never pass within their cap of blocks.

    Args:
        attempts: the budget's; each may use one k more for each retry after infrastructure.

    Source: judging, 3.3, Validation; 3.2, Evidence.
    """
    need = -math.log(judging.screen_alpha)
    blocks = fewest_blocks(need)
    if blocks > judging.max_blocks:
        yield (
            ("judging", "max_blocks"),
            (
                f"judging.max_blocks is {judging.max_blocks}, and a screen needs at least {blocks}"
                f" blocks to pass: set it to {blocks}"
            ),
        )
    cap = judging.confirm_max_blocks
    last = attempts * (1 + judging.infra_retries)
    blocks = fewest_blocks(confirm_evidence(judging, last))
    if blocks <= cap:
        yield from _guard_evidence_problems(judging)
        return
    most = _most_attempts(judging)
    way_out = f", or plan at most {most} attempts" if most else ""
    yield (
        ("judging", "confirm_max_blocks"),
        (
            f"judging.confirm_max_blocks is {cap}, and attempt {last} needs at least"
            f" {blocks} blocks to be confirmed: set it to {blocks}{way_out}"
        ),
    )


def _guard_evidence_problems(judging: Judging) -> Found:
    """Yield that no guard, each cell's own among them, can be shown as kept within confirm."""
    cap, blocks = judging.confirm_max_blocks, fewest_blocks(-math.log(judging.guard_alpha))
    if blocks > cap:
        said = f"judging.confirm_max_blocks is {cap}, and a guard needs at least {blocks} blocks"
        yield ("judging", "confirm_max_blocks"), f"{said} to be shown as kept: set it to {blocks}"


def confirm_evidence(judging: Judging, k: int) -> float:
    """Return ln(screen_alpha / alpha_k): the log-evidence that a confirm needs (judging, 3.2)."""
    step = (k - 1) // judging.alpha_horizon
    alpha = (
        math.log(judging.alpha_campaign)
        - (step + 1) * math.log(2)
        - math.log(judging.alpha_horizon)
    )
    return math.log(judging.screen_alpha) - alpha


def fewest_blocks(log_evidence: float) -> int:
    """Return how many blocks can reach a log-evidence when every one is a large gain."""
    blocks = max(1, math.floor(log_evidence / math.log(2)))
    while _largest_evidence(blocks) < log_evidence - _SLACK:
        blocks += 1
    return blocks


def _largest_evidence(blocks: int) -> float:
    """Return the log-evidence that so many blocks reach at most.

    Each of the seven factors of the mixture doubles with a large gain and the sign's grows by
    1.98, so E = (7 * 2^n + 1.98^n) / 8 (judging, 3.2 and 2.5).
    """
    return blocks * math.log(2) + math.log((7 + 0.99**blocks) / 8)


def _most_attempts(judging: Judging) -> int:
    """Return how many attempts the cap of confirm leaves room for: in whole horizons."""
    before_halving = confirm_evidence(judging, 1) - math.log(2)
    spare = _largest_evidence(judging.confirm_max_blocks) - before_halving + _SLACK
    horizons = max(0, math.floor(spare / math.log(2)))
    return horizons * judging.alpha_horizon // (1 + judging.infra_retries)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> list[tuple[int, Mapping[str, Any]]]:
    found = enumerate(value if isinstance(value, list) else [])
    return [(at, one) for at, one in found if isinstance(one, dict)]


def _texts(value: object) -> list[tuple[int, str]]:
    found = enumerate(value if isinstance(value, list) else [])
    return [(at, one) for at, one in found if isinstance(one, str)]
