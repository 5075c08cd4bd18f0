"""Which level this spawner takes: the one asked for, or the best that its canaries prove.

Each is applied, cleared of what a dead spawner left, and only then tried, so that nothing left
behind has a say. Only `auto` goes on to the next one, and keeps why; a level that was asked for
by name is had or refused. Source: isolation, 4.2.
"""

from .ground import Ground
from .leftover import clear_left_behind, run_to_end
from .level import BEST_FIRST, level_of
from .proving import why_not_proven
from .reach import hold_stage_root, leave_stage_root, settle_places
from .settings import BadSettingsError, Settings
from .uids import Leases


def chosen(settings: Settings) -> Ground:
    """Return this spawner's ground at the level that it takes.

    Raises:
        BadSettingsError: the level can't be had, in words; or its users can't reach what they need.
        RefusedError: what a dead spawner left can't be cleared.
    """
    hold_stage_root(settings.stage_root)
    leases = Leases(f"{settings.run_dir}/uids", settings.state, *settings.uid_range)
    passed: dict[str, str] = {}
    for name in BEST_FIRST if settings.isolation == "auto" else (settings.isolation,):
        found = _proven(settings, name, leases)
        if isinstance(found, Ground):
            found.level.passed_over = passed
            return found
        passed[name] = found
    raise BadSettingsError(
        "; ".join(f"isolation {name} can't be had: {why}" for name, why in passed.items())
    )


def _proven(settings: Settings, name: str, leases: Leases) -> Ground | str:
    """Return the ground at a level, or in words why the level can't be had."""
    found = level_of(settings, name, leases)
    if isinstance(found, str):
        return found
    level, slots = found
    if level.leases is None:
        leases.give_up()
    ground = Ground(settings, level, slots)
    settle_places(ground)
    run_to_end(ground, clear_left_behind(ground))
    problem = None if name == "none" else why_not_proven(ground)
    if problem is None:
        return ground
    ground.end_nursery()
    leave_stage_root(ground)
    return problem
