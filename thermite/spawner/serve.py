"""The spawner's main: read the settings, find the level, answer until nobody asks."""

import gc
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from . import linux
from .absence import is_exact
from .block import Blocks
from .choosing import chosen
from .ending import end_strays, end_strays_for_ever
from .family import Family
from .folders import clear_slots, collect_outputs, make_folder, place_entries, sweep
from .ground import Ground
from .level import allow_realtime
from .listener import Answer, Listener
from .loop import Step, Until
from .ownership import settle_state
from .reach import leave_places
from .settings import MAX_SETTINGS_BYTES, BadSettingsError, Settings, read_settings
from .stage import Reply, run_stage
from .vocabulary import HARNESS, Fields, RefusedError

_FIRST_FREE_FD: Final = 6
_DESCRIPTORS: Final = 1 << 17
"""More than a stage can get (`child`); some containers' limit is a thousand million."""
_LONGEST_END_S: Final = 30.0
_INFRASTRUCTURE: Final = 10
"""Exit code of a rig that can't start or go on (the system page, Command line)."""


def main(argv: list[str]) -> int:
    """Run a spawner; argv: the number of a descriptor that holds the settings."""
    try:
        settings = read_settings(_read_all(int(argv[1])))
        ground = prepared(settings)
        blocks = Blocks(ground)
    except (BadSettingsError, RefusedError, OSError) as error:
        sys.stderr.write(f"thermite spawner: {error}\n")
        return _INFRASTRUCTURE
    serve = _serve_children if settings.children else _serve_client
    ground.loop.start(end_strays_for_ever(ground))
    ground.loop.start(ground.make_ahead())
    gc.collect()
    gc.disable()  # nothing here makes cycles that grow; a collection would touch every page
    gc.freeze()  # a fork then copies fewer pages
    failure = serve(ground, blocks)
    leave_places(ground)
    if failure is not None:
        sys.stderr.write(f"thermite spawner: {failure}\n")
        return _INFRASTRUCTURE
    return 0


def _serve_children(ground: Ground, blocks: Blocks) -> str | None:
    """Keep supervisor and harness until a signal asks for the end; return what went wrong."""
    family = Family(ground, _answers(ground, blocks), lambda: end_all(ground, blocks))
    _watch_signals(ground, family.stop)
    family.begin()
    ground.loop.run()
    return family.failure


def _serve_client(ground: Ground, blocks: Blocks) -> str | None:
    """Serve the one harness that is there already, until it hangs up."""
    listener = Listener(ground, ground.settings.client_fd or -1, HARNESS, _answers(ground, blocks))

    def until_alone() -> Step[None]:
        yield from listener.listen()
        yield from end_all(ground, blocks)
        ground.loop.stopping = True

    _watch_signals(ground, listener.hang_up)
    ground.loop.start(until_alone())
    ground.loop.run()
    return None


def _read_all(fd: int) -> bytes:
    with open(fd, "rb") as stream:
        return stream.read(MAX_SETTINGS_BYTES + 1)


def prepared(settings: Settings) -> Ground:
    """Make this process what a spawner is, and find out what it can do."""
    while (fd := os.open("/dev/null", os.O_RDWR)) < _FIRST_FREE_FD:
        pass  # a stage's child uses 0 to 5 for itself, so nothing of ours may lie there
    os.close(fd)
    os.umask(0o077)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    ours = _DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (ours, most))
    linux.become_subreaper()
    linux.close_to_tracers()
    ground = chosen(settings)
    level, slots = ground.level, ground.slots
    if settings.realtime_runs:
        allow_realtime(ground)
    if settings.children:
        settle_state(settings.state, level.harness, level.supervisor)
    level.sees_absence = "seccomp" in level.features and any(
        is_exact(slot.identity) for slot in slots.values() if slot.identity is not None
    )
    os.sched_setaffinity(0, ground.quiet_cpus)
    return ground


def _watch_signals(ground: Ground, stop: Callable[[], None]) -> None:
    """Bury orphans whenever a child ends, and stop at SIGTERM and SIGINT."""
    read, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    for caught in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(caught, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def hear() -> Step[None]:
        while True:
            yield Until((read,))
            numbers = os.read(read, 4096)
            if signal.SIGTERM in numbers or signal.SIGINT in numbers:
                stop()
            while ground.reap():
                yield Until((), time.monotonic())

    ground.loop.start(hear())


def _answers(ground: Ground, blocks: Blocks) -> dict[str, Answer]:
    return {
        "probe": lambda *_: _probe(ground),
        "folder": lambda fields, _: make_folder(ground, fields),
        "place": lambda fields, fds: place_entries(ground, fields, fds),
        "start": lambda fields, fds: run_stage(ground, fields, fds),
        "kill": lambda fields, _: _kill(ground, fields),
        "collect": lambda fields, fds: collect_outputs(ground, fields, fds),
        "sweep": lambda fields, _: sweep(ground, fields),
        "block_begin": lambda fields, _: blocks.begin(fields),
        "block_end": lambda *_: blocks.end(),
    }


def _probe(ground: Ground) -> Reply:
    """Say what this spawner applies and has."""
    slots = {
        name: {"user": slot.word, "uid": slot.uid, "quarantined": slot.quarantined}
        for name, slot in ground.slots.items()
    }
    level = ground.level
    record: dict[str, Any] = {
        "level": level.name,
        "features": level.features,
        "network": level.network,
        "gaps": level.gaps,
        "passed_over": level.passed_over,
        "slots": slots,
        "run_cpus": sorted(ground.run_cpus),
        "cards": sorted(ground.settings.cards),
        "path": ground.settings.stage_path,
        "stage_root": ground.stage_root,
    }
    return record, []


def _kill(ground: Ground, fields: Fields) -> Reply:
    """Ask for the end of what runs in a slot; its own reply says when it has ended."""
    slot = ground.slot(fields["slot"])
    if slot.live is not None:
        slot.live.to_kill = True
        ground.loop.wake(slot.live.task)
    return {"was_live": slot.live is not None}, []


def end_all(ground: Ground, blocks: Blocks) -> Step[None]:
    """End every stage, prove each gone, sweep every slot, and release the clock."""
    yield from blocks.release()
    give_up = time.monotonic() + _LONGEST_END_S
    while any(slot.busy for slot in ground.slots.values()) and time.monotonic() < give_up:
        for _, live in ground.lives():
            live.to_kill = True
            ground.loop.wake(live.task)
        yield Until((), time.monotonic() + 0.01)
    end_strays(ground)
    yield from clear_slots(ground)
