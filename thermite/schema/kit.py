"""The kit's manifest, `kit.json`: shapes, defaults and ranges; reading one is `kit.manifest`.

Source: the reference page "Kit manifest". Numbers in cells keep all their digits.
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from thermite.schema.contract import McpServer
from thermite.schema.strict import Strict

DRIVERS: Final = frozenset({"cpu", "cuda-gpu"})
"""Targets that this version has a driver for (Kit manifest, `target`)."""

Name: TypeAlias = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")]
AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1)]
Words: TypeAlias = Annotated[list[str], Meta(min_length=1)]
CellValue: TypeAlias = int | float | str | bool
Cell: TypeAlias = dict[str, CellValue]
MetricName: TypeAlias = str


class Problem(Strict):
    """One thing that is wrong with a document.

    place: dotted, with list indices, e.g. `build.copy[1]`; empty for the whole document.
    """

    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


class BuildSection(Strict):
    """How a candidate is built: timeout_s in seconds, rss_mib and disk_mib in MiB."""

    command: Words
    outputs: Words
    copy: list[str] = msgspec.field(default_factory=list)
    timeout_s: AtLeastOne = 600
    rss_mib: AtLeastOne = 4096
    disk_mib: AtLeastOne = 4096


class RunSection(Strict):
    """One run of one build on one cell: timeout_s in seconds, rss_mib and disk_mib in MiB."""

    command: Words
    copy: list[str] = msgspec.field(default_factory=list)
    timeout_s: AtLeastOne = 300
    rss_mib: AtLeastOne = 1024
    disk_mib: AtLeastOne = 256


class CheckSection(Strict):
    """The judge's own program that looks at a run's outputs: timeout_s in seconds."""

    command: Words
    timeout_s: AtLeastOne = 120


class RateMetric(Strict):
    """The cell's parameter `work` by the run's time in seconds; unit is a label only."""

    unit: str
    work: Annotated[str, Meta(min_length=1)]


class TimeMetric(Strict, tag="time", tag_field="from"):
    """The run's time in seconds on the judge's clock."""

    unit: str = "s"


class CheckMetric(Strict, tag="check", tag_field="from"):
    """A number that the check prints under `field`."""

    field: Annotated[str, Meta(min_length=1)]
    unit: str = ""


Metric: TypeAlias = RateMetric | TimeMetric | CheckMetric


class Verifier(Strict):
    """How a goal is checked: one run on each cell; requires: gates that must pass first."""

    cells: Words
    priority: int = 100
    requires: list[str] = msgspec.field(default_factory=list)


class Kit(Strict):
    """A manifest that has no problem; cells, metrics and verifiers in the file's order."""

    schema_version: Literal[1]
    name: Name
    target: Annotated[str, Meta(min_length=1)]
    build: BuildSection
    cells: dict[str, Cell]
    run: RunSection
    metrics: dict[MetricName, Metric]
    check: CheckSection
    verifiers: dict[str, Verifier] = msgspec.field(default_factory=dict)
    mcp_servers: Annotated[list[McpServer], Meta(max_length=20)] = msgspec.field(
        default_factory=list
    )
