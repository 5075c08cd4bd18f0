"""The spawner's main: read the settings, find the level, answer until nobody asks."""

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from . import linux
from .block import Blocks, lock_folder
from .folders import collect_outputs, make_folder, place_entries, sweep
from .ground import Ground
from .level import find_level
from .loop import Step, Until
from .settings import MAX_SETTINGS_BYTES, BadSettingsError, Settings, read_settings
from .stage import Reply, run_stage
from .vocabulary import (
    HARNESS,
    MAX_DESCRIPTORS,
    MAX_MESSAGE_BYTES,
    Fields,
    RefusedError,
    Request,
    Shape,
    id_of,
    read_request,
    write,
)

_MOST_REQUESTS: Final = 256
_FIRST_FREE_FD: Final = 6
_LONGEST_END_S: Final = 30.0

Answer = Callable[[Fields, list[int]], Generator[Until, frozenset[int], Reply] | Reply]


def main(argv: list[str]) -> int:
    """Run a spawner; argv: the number of a descriptor that holds the settings."""
    try:
        settings = read_settings(_read_all(int(argv[1])))
        ground = prepared(settings)
    except (BadSettingsError, RefusedError) as error:
        sys.stderr.write(f"thermite spawner: {error}\n")
        return 10
    blocks = Blocks(ground, lock_folder(ground))
    harness = Listener(ground, settings.client_fd or -1, HARNESS, _answers(ground, blocks))
    ground.loop.start(_until_alone(ground, harness, blocks))
    gc.collect()
    gc.freeze()
    ground.loop.run()
    return 0


def _read_all(fd: int) -> bytes:
    with open(fd, "rb") as stream:
        return stream.read(MAX_SETTINGS_BYTES + 1)


def prepared(settings: Settings) -> Ground:
    """Make this process what a spawner is, and find out what it can do."""
    while (fd := os.open("/dev/null", os.O_RDWR)) < _FIRST_FREE_FD:
        pass  # a stage's child uses 0 to 5 for itself, so nothing of ours may lie there
    os.close(fd)
    os.umask(0)
    os.makedirs(settings.stage_root, 0o711, exist_ok=True)
    os.umask(0o077)
    linux.become_subreaper()
    linux.close_to_tracers()
    level, slots = find_level(settings)
    ground = Ground(settings, level, slots)
    os.sched_setaffinity(0, ground.quiet_cpus)
    _watch_children(ground)
    return ground


def _watch_children(ground: Ground) -> None:
    """Bury orphans whenever a child ends."""
    read, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def bury() -> Step[None]:
        while True:
            yield Until((read,))
            os.read(read, 4096)
            ground.reap()

    ground.loop.start(bury())


class Listener:
    """One peer's socket: requests in, one reply to each out."""

    def __init__(
        self, ground: Ground, fd: int, words: Mapping[str, Shape], answers: Mapping[str, Answer]
    ) -> None:
        self._ground, self._words, self._answers = ground, words, answers
        self._socket = socket.socket(fileno=fd)
        self._socket.settimeout(0)
        self._open_requests = 0
        self._queue: list[tuple[bytes, list[int]]] = []
        self.is_gone = False

    def listen(self) -> Step[None]:
        """Take requests until the peer closes its end."""
        loop = self._ground.loop
        while not self.is_gone:
            ready = yield Until((self._socket.fileno(),))
            if not ready:
                continue
            try:
                raw, fds, flags, _ = socket.recv_fds(
                    self._socket, MAX_MESSAGE_BYTES + 1, MAX_DESCRIPTORS
                )
            except BlockingIOError:
                continue
            except OSError:
                break
            if not raw:
                break
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raw = b"x" * (MAX_MESSAGE_BYTES + 1)
            loop.start(self._answer(raw, fds))
        self.is_gone = True

    def _answer(self, raw: bytes, fds: list[int]) -> Step[None]:
        number = 0
        self._open_requests += 1
        given: list[int] = []
        try:
            number = id_of(raw)
            request = self._admitted(raw)
            answer = self._answers[request.do](request.fields, fds)
            reply, given = answer if isinstance(answer, tuple) else (yield from answer)
            message = write({"id": number, "ok": True, **reply})
        except RefusedError as refusal:
            message = write({"id": number, "ok": False, "error": str(refusal)})
        except OSError as error:
            message = write({"id": number, "ok": False, "error": f"the spawner: {error}"})
        finally:
            self._open_requests -= 1
            for fd in fds:
                os.close(fd)
        yield from self._send(message, given)

    def _admitted(self, raw: bytes) -> Request:
        if self._open_requests > _MOST_REQUESTS:
            raise RefusedError(f"more than {_MOST_REQUESTS} requests are open")
        return read_request(raw, self._words)

    def _send(self, message: bytes, fds: list[int]) -> Step[None]:
        """Send one reply; a peer that does not read makes only its own replies wait."""
        try:
            while not self.is_gone:
                try:
                    socket.send_fds(self._socket, [message], fds)
                except BlockingIOError:
                    yield Until((), None, (self._socket.fileno(),))
                except OSError:
                    self.is_gone = True
                else:
                    return
        finally:
            for fd in fds:
                os.close(fd)


def _answers(ground: Ground, blocks: Blocks) -> dict[str, Answer]:
    return {
        "probe": lambda *_: _probe(ground),
        "folder": lambda fields, _: make_folder(ground, fields),
        "place": lambda fields, fds: place_entries(ground, fields, fds),
        "start": lambda fields, _: run_stage(ground, fields),
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
        "slots": slots,
        "run_cpus": sorted(ground.run_cpus),
        "path": ground.settings.stage_path,
        "stage_root": ground.settings.stage_root,
    }
    return record, []


def _kill(ground: Ground, fields: Fields) -> Reply:
    """Ask for the end of what runs in a slot; its own reply says when it has ended."""
    slot = ground.slot(fields["slot"])
    if slot.live is not None:
        slot.live.to_kill = True
        ground.loop.wake(slot.live.task)
    return {"was_live": slot.live is not None}, []


def _until_alone(ground: Ground, harness: Listener, blocks: Blocks) -> Step[None]:
    """End everything and leave once the harness has gone."""
    yield from harness.listen()
    yield from end_all(ground, blocks)
    ground.loop.stopping = True


def end_all(ground: Ground, blocks: Blocks) -> Step[None]:
    """End every stage, wait until each is proven gone, and release the clock."""
    yield from blocks.release()
    give_up = time.monotonic() + _LONGEST_END_S
    while any(slot.busy for slot in ground.slots.values()) and time.monotonic() < give_up:
        for _, live in ground.lives():
            live.to_kill = True
            ground.loop.wake(live.task)
        yield Until((), time.monotonic() + 0.01)
