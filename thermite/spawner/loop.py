"""The only place that waits: generators that yield what they wait for, over one epoll.

A task yields `Until(fds, deadline)` and is resumed with the set of descriptors that are
ready, empty when the deadline passed or somebody called `Loop.wake`. It must look again
at what it waits for, since a wake may come for another reason. A task's own tasks are
plain `yield from`.
"""

import heapq
import select
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from .linux import raw_ns

T = TypeVar("T")
_LONGEST_WAIT_S = 60.0


@dataclass(frozen=True)
class Until:
    """What a task waits for; deadline: seconds of time.monotonic, None for ever."""

    read: tuple[int, ...] = ()
    deadline: float | None = None
    write: tuple[int, ...] = ()


Ready: TypeAlias = frozenset[int]
Step: TypeAlias = Generator[Until, Ready, T]


@dataclass(eq=False)
class Task:
    """One running generator."""

    steps: Step[None]
    waits: Until = field(default_factory=Until)
    turn: int = 0
    done: bool = False


class Gate:
    """A door that tasks wait before; whoever opens it wakes them all."""

    def __init__(self, loop: "Loop", *, is_open: bool = True) -> None:
        self.is_open = is_open
        self._loop = loop
        self._waiting: set[Task] = set()

    def open(self) -> None:
        """Open it and wake every task before it."""
        self.is_open = True
        for task in self._waiting:
            self._loop.wake(task)

    def shut(self) -> None:
        """Shut it: the next one waits."""
        self.is_open = False

    def passed(self, deadline: float | None = None) -> Step[bool]:
        """Wait until the gate is open; false when the deadline came first."""
        while not self.is_open:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            task = self._loop.current
            self._waiting.add(task)
            try:
                yield Until((), deadline)
            finally:
                self._waiting.discard(task)
        return True

    def taken(self) -> Step[None]:
        """Wait until it is open and shut it behind this task: a lock."""
        yield from self.passed()
        self.shut()


class Loop:
    """An epoll, a heap of deadlines and the tasks between them."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, set[Task]] = {}
        self._writers: dict[int, set[Task]] = {}
        self._timers: list[tuple[float, int, int, Task]] = []
        self._woken: dict[Task, None] = {}
        self._count = 0
        self._current: Task | None = None
        self.stamp = raw_ns()
        self.stopping = False

    @property
    def current(self) -> Task:
        """The task that runs now."""
        if self._current is None:
            message = "no task runs"
            raise RuntimeError(message)
        return self._current

    def start(self, steps: Step[None]) -> Task:
        """Begin a task; it runs from the next turn of the loop on."""
        task = Task(steps)
        self._woken[task] = None
        return task

    def wake(self, task: Task) -> None:
        """Resume a task with nothing ready, at the next turn."""
        if not task.done:
            self._woken[task] = None

    def run(self) -> None:
        """Go round until `stopping` is set."""
        while not self.stopping:
            self.turn()

    def turn(self) -> None:
        """Wait once, stamp, and resume whatever became ready."""
        events = self._epoll.poll(self._patience())
        self.stamp = raw_ns()
        ready: dict[Task, set[int]] = {}
        for fd, _ in events:
            for task in self._readers.get(fd, set()) | self._writers.get(fd, set()):
                ready.setdefault(task, set()).add(fd)
        woken = list(self._woken)
        self._woken.clear()
        for task in (*woken, *self._late()):
            ready.setdefault(task, set())
        for task, fds in ready.items():
            self._resume(task, frozenset(fds))

    def _patience(self) -> float:
        if self._woken:
            return 0.0
        if not self._timers:
            return _LONGEST_WAIT_S
        return min(_LONGEST_WAIT_S, max(0.0, self._timers[0][0] - time.monotonic()))

    def _late(self) -> Iterable[Task]:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            _, _, turn, task = heapq.heappop(self._timers)
            if not task.done and task.turn == turn:
                yield task

    def _resume(self, task: Task, fds: Ready) -> None:
        if task.done:
            return
        self._forget(task)
        self._current = task
        try:
            task.waits = task.steps.send(fds) if task.turn else next(task.steps)
        except StopIteration:
            task.done = True
            return
        finally:
            self._current = None
            task.turn += 1
        self._watch(task)

    def _watch(self, task: Task) -> None:
        for fd in task.waits.read:
            self._enrol(fd, task, self._readers)
        for fd in task.waits.write:
            self._enrol(fd, task, self._writers)
        if task.waits.deadline is not None:
            self._count += 1
            entry = (task.waits.deadline, self._count, task.turn, task)
            heapq.heappush(self._timers, entry)

    def _enrol(self, fd: int, task: Task, table: dict[int, set[Task]]) -> None:
        known = fd in self._readers or fd in self._writers
        table.setdefault(fd, set()).add(task)
        self._set_mask(fd, known=known)

    def _forget(self, task: Task) -> None:
        for table, fds in (
            (self._readers, task.waits.read),
            (self._writers, task.waits.write),
        ):
            for fd in fds:
                tasks = table.get(fd)
                if tasks is None:
                    continue
                tasks.discard(task)
                if not tasks:
                    del table[fd]
                self._set_mask(fd, known=True)

    def _set_mask(self, fd: int, *, known: bool) -> None:
        mask = (select.EPOLLIN if fd in self._readers else 0) | (
            select.EPOLLOUT if fd in self._writers else 0
        )
        try:
            if mask == 0:
                self._epoll.unregister(fd)
            elif known:
                self._epoll.modify(fd, mask)
            else:
                self._epoll.register(fd, mask)
        except OSError:
            # closed meanwhile, which takes it out of the epoll by itself
            if mask:
                raise
