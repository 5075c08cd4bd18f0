"""Say in words what a judge does with a kit: stages, users, limits, cells, what a run can see.

Source: the reference page "Kit manifest".
"""

import shlex
from collections.abc import Iterator

from thermite.kit.placeholder import placeholders
from thermite.schema.kit import CheckMetric, Kit, Metric, RateMetric

_CHECK_ONLY = "nothing of the kit"


def describe(kit: Kit) -> list[str]:
    """Return the lines of a description, for a person."""
    return [
        f"{kit.name} measures on {kit.target}",
        *_build(kit),
        *_run(kit),
        *_check(kit),
        *_cells(kit),
        "metrics",
        *(f"  {name}: {_metric(metric)}" for name, metric in kit.metrics.items()),
        *_verifiers(kit),
        *_servers(kit),
    ]


def _build(kit: Kit) -> Iterator[str]:
    build = kit.build
    yield "build, as user builder, in a fresh export of the candidate's commit"
    yield f"  runs      {shlex.join(build.command)}"
    yield f"  sees      {_copies(build.copy, '.kit/') or _CHECK_ONLY}"
    yield f"  makes     {', '.join(build.outputs)}: kept, hashed, read-only; used again as it is"
    yield f"  limits    {_limits(build.timeout_s, build.rss_mib, build.disk_mib)}, 512 processes"


def _run(kit: Kit) -> Iterator[str]:
    run = kit.run
    names = {one.name for one in placeholders(run.command)}
    told = "the cell's parameters" if names & {"params", "params_json"} else "no parameters"
    yield "run, as user run, in an empty folder of its own, once for each build and cell"
    yield f"  runs      {shlex.join(run.command)}"
    yield f"  sees      its build, {told}, {_copies(run.copy, '') or _CHECK_ONLY}"
    yield f"  limits    {_limits(run.timeout_s, run.rss_mib, run.disk_mib)}, 256 processes"
    yield "  reports   nothing: the judge's clock times it from outside"


def _check(kit: Kit) -> Iterator[str]:
    yield "check, as the judge, in the kit, after every run"
    yield f"  runs      {shlex.join(kit.check.command)}"
    yield "  sees      the whole kit, the run's output, the judge's own copy of the parameters"
    yield f"  limits    {kit.check.timeout_s} s"


def _limits(timeout_s: int, rss_mib: int, disk_mib: int) -> str:
    return f"{timeout_s} s, {rss_mib} MiB of memory, {disk_mib} MiB of disk"


def _copies(paths: list[str], below: str) -> str:
    return ", ".join(f"{below}{path}" for path in paths)


def _cells(kit: Kit) -> Iterator[str]:
    yield f"cells ({len(kit.cells)}; the contract chooses which count)"
    for name, parameters in kit.cells.items():
        told = ", ".join(f"{key} = {value}" for key, value in parameters.items())
        yield f"  {name}: {told or 'no parameters'}"


def _metric(metric: Metric) -> str:
    unit = f", in {metric.unit}" if metric.unit else ""
    if isinstance(metric, RateMetric):
        return f"the cell's {metric.work} by the run's seconds{unit}"
    if isinstance(metric, CheckMetric):
        return f"what the check prints under {metric.field}{unit}"
    return f"the run's seconds{unit}; a contract improves it with direction min"


def _verifiers(kit: Kit) -> Iterator[str]:
    if kit.verifiers:
        yield "verifiers, for goal campaigns, lowest priority first"
    for name, one in sorted(kit.verifiers.items(), key=lambda item: item[1].priority):
        gates = f", after {', '.join(one.requires)}" if one.requires else ""
        yield f"  {name}: runs {', '.join(one.cells)} (priority {one.priority}{gates})"


def _servers(kit: Kit) -> Iterator[str]:
    if kit.mcp_servers:
        yield "MCP servers, for agents only"
    for one in kit.mcp_servers:
        tools = {kind: f" ({', '.join(names)})" for kind, names in (one.tools or {}).items()}
        given = ", ".join(f"{kind}{tools.get(kind, '')}" for kind in one.agents)
        yield f"  {one.name}: {given}"
