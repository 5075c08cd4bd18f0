"""The limits that ended builds and runs, as the kit sets them.

A reason is the document's own words, `killed: timeout`, and names no number; a note beside it
says which limit that was. Source: known faults, C8.
"""

from collections.abc import Iterable
from typing import Final

from thermite.judge.verdict import reason
from thermite.schema.event import Build, Run
from thermite.schema.kit import BuildSection, Kit, RunSection
from thermite.schema.stage import LimitName
from thermite.schema.strict import Strict

_FIELDS: Final[dict[LimitName, str]] = {
    "timeout": "timeout_s",
    "memory": "rss_mib",
    "disk": "disk_mib",
}


def limit_notes(facts: Iterable[Strict], kit: Kit) -> list[str]:
    """Return a note for each limit of the kit that ended a build or a run."""
    return list(dict.fromkeys(note for fact in facts for note in _notes(fact, kit)))


def _notes(fact: Strict, kit: Kit) -> list[str]:
    if isinstance(fact, Build) and fact.outcome == "build_killed":
        return [
            _note("build", kit.build, limit)
            for limit in _FIELDS
            if (fact.reason or "").startswith(reason.build_killed(limit, b""))
        ]
    if isinstance(fact, Run) and fact.outcome == "run_killed":
        return [
            _note("run", kit.run, limit)
            for limit in _FIELDS
            if fact.reason == reason.run_killed(limit)
        ]
    return []


def _note(where: str, section: BuildSection | RunSection, limit: LimitName) -> str:
    name = _FIELDS[limit]
    return f"the kit's limit: {where}.{name} is {getattr(section, name)}"
