"""The isolation levels that tests run at, the weakest first, and a rig at each: the one place.

They are the levels that `thermite rig doctor` tries: a test that takes its levels from here is
run at a new one as soon as a spawner has learnt it.
"""

import contextlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.namespaced import Namespace, possible
from tests.open_folder import open_folder
from thermite.rig import doctor
from thermite.rig.stages import Stages
from thermite.rig.start import spawner
from thermite.schema.stage import LevelName

LEVELS: Final[tuple[LevelName, ...]] = doctor.LEVELS
OWN_USER: Final = tuple(level for level in LEVELS if level.startswith("users"))
"""Where each slot has a user of its own: a kill(-1) of a stage would else reach the test's."""


def why_not(level: LevelName) -> str | None:
    """Return why a level can't be had in this process, None where it can."""
    if level == "none" or (level in OWN_USER and possible()):
        return None
    if level not in OWN_USER:
        return _told_by_the_doctor(level)
    return f"no {level}: no pid namespace can be made here: this needs root and CAP_SYS_ADMIN"


@cache
def _told_by_the_doctor(level: LevelName) -> str | None:
    (tried,) = (one for one in doctor.examine().levels if one.level == level)
    return None if tried.had else f"no {level}: {tried.why_not}"


@contextlib.contextmanager
def rig_at(
    level: LevelName,
    place: Path,
    name: str | None = None,
    **config: Any,  # noqa: ANN401 - SpawnerConfig's fields
) -> Iterator[Stages]:
    """Run a rig; one that can reach a kill(-1) in a pid namespace, whose bystanders must live.

    place: a folder that every user may enter; name: of the rig's folder in it, the level's unless
    given; config: further fields of `SpawnerConfig`.
    """
    state = place / (name or level)
    if level not in OWN_USER:
        with spawner(state, isolation=level, **config) as stages:
            yield stages
        return
    own: dict[str, Any] = {"isolation": level, "run_dir": place / "run", **config}
    with Namespace() as ns, spawner(state, within=ns.prefix, **own) as stages:
        yield stages
        assert ns.bystanders() == 3


class Rigs:
    """One rig a level, started when it is first asked for, ended with the stack."""

    def __init__(self, place: Path, stack: contextlib.ExitStack) -> None:
        self._place, self._stack = place, stack
        self._started: dict[LevelName, Stages] = {}

    def at(self, level: LevelName) -> Stages:
        """Return the rig of a level; the test is skipped where it can't be had."""
        problem = why_not(level)
        if problem is not None:
            pytest.skip(problem)
        if level not in self._started:
            self._started[level] = self._stack.enter_context(rig_at(level, self._place))
        return self._started[level]


@contextlib.contextmanager
def all_rigs() -> Iterator[Rigs]:
    """Lend rigs in a fresh folder that every user may enter."""
    with open_folder() as place, contextlib.ExitStack() as stack:
        yield Rigs(place, stack)
