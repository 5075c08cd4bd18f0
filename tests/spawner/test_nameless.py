"""Files in memory without a name: each counts once, whoever holds it and however."""

import ctypes
import mmap
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.leased import few_uids
from tests.spawner.relay import relay
from thermite.spawner import linux
from thermite.spawner.child import Identity, take_identity
from thermite.spawner.fork import Garb, end, fork
from thermite.spawner.nameless import Found, Nameless, most_shared
from thermite.spawner.seccomp import watching

MIB = 1 << 20
BOUNDLESS = 1 << 40
SHM = Path("/dev/shm")
PIDFD_GETFD = 438
EXIT = {"x86_64": 60, "aarch64": 93}


def memfd(mib: int = 3) -> int:
    fd = os.memfd_create("held")
    os.write(fd, bytes(mib * MIB))
    return fd


def named(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, bytes(3 * MIB))
    return fd


def deleted() -> int:
    path = SHM / f"thermite-nameless-{os.getpid()}"
    fd = named(path)
    path.unlink()
    return fd


@contextmanager
def process(hold: Callable[[], object], *, but_first_thread: bool = False) -> Iterator[int]:
    """Lend a process that holds what this makes."""
    told, say = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _stay(hold, say, but_first_thread=but_first_thread)
        finally:
            os._exit(1)
    os.close(say)
    try:
        assert os.read(told, 1) == b"1"
        while but_first_thread and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            pass
        yield pid
    finally:
        os.close(told)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _stay(hold: Callable[[], object], say: int, *, but_first_thread: bool) -> None:
    linux.close_to_tracers(closed=False)

    def stay() -> None:
        kept = hold()
        os.write(say, b"1")
        while kept is not say:
            signal.pause()

    if but_first_thread:
        threading.Thread(target=stay).start()
        ctypes.CDLL(None).syscall(ctypes.c_long(EXIT[linux.MACHINE]), 0)
    stay()


@pytest.fixture
def own() -> int:
    """What each process of these tests holds itself: a library of Python's may have a file."""
    with process(lambda: None) as pid:
        return Nameless(None).look([pid], BOUNDLESS).taken


def found(hold: Callable[[], object], *, most: int = BOUNDLESS) -> Found:
    with process(hold) as pid:
        return Nameless(os.getuid()).look([pid], most)


@pytest.mark.parametrize("make", [memfd, deleted])
def test_what_has_no_name_counts_by_its_blocks(make: Callable[[], int], own: int) -> None:
    assert found(make) == Found(own + 3 * MIB)


def test_a_file_counts_once_for_all_descriptors_and_mappings_of_all_processes(own: int) -> None:
    fd = memfd()

    def hold() -> object:
        return os.dup(fd), mmap.mmap(fd, 0)

    try:
        with process(hold) as one, process(hold) as other:
            assert Nameless(os.getuid()).look([one, other], BOUNDLESS) == Found(own + 3 * MIB)
    finally:
        os.close(fd)


def test_a_file_with_a_name_or_of_somebody_else_does_not_count(own: int) -> None:
    path = SHM / f"thermite-named-{os.getpid()}"
    try:
        assert found(lambda: named(path)) == Found(own)
    finally:
        path.unlink()
    with process(memfd) as pid:
        assert Nameless(os.getuid() + 1).look([pid], BOUNDLESS) == Found(0)
        assert Nameless(None).look([pid], BOUNDLESS) == Found(own + 3 * MIB)


def test_a_look_ends_where_there_is_more_than_may_be(own: int) -> None:
    taken = found(lambda: [memfd(1) for _ in range(9)], most=own + 2 * MIB).taken
    assert 2 * MIB < taken <= own + 3 * MIB


def test_one_whose_first_thread_has_left_is_looked_into_by_another(own: int) -> None:
    with process(memfd, but_first_thread=True) as pid:
        assert Nameless(None).look([pid], BOUNDLESS).taken == own + 3 * MIB


def test_threads_that_hand_over_hide_nothing_from_a_look_that_calls_itself_whole() -> None:
    """One that leaves while it is looked at shows only some of what the others still hold."""
    with relay("memfd") as pid:
        looks = [Nameless(None).look([pid], BOUNDLESS) for _ in range(300)]
    assert min((one.taken for one in looks if one.is_whole), default=BOUNDLESS) >= 16 * MIB
    assert any(one.is_whole for one in looks)


def test_a_process_that_is_gone_holds_nothing() -> None:
    with process(memfd) as pid:
        pass
    assert Nameless(None).look([pid], BOUNDLESS) == Found(0)


def test_one_that_has_ended_and_is_not_buried_hides_nothing() -> None:
    def hold() -> None:
        if os.fork() == 0:
            os._exit(0)
        pid = int(Path("/proc/thread-self/children").read_text().split()[0])
        while "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
            pass

    with process(hold) as pid:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert Nameless(None).look([*map(int, children)], BOUNDLESS) == Found(0)


def test_one_that_is_closed_to_its_own_user_may_hide_something(own: int) -> None:
    def hold() -> int:
        linux.close_to_tracers()
        return memfd()

    with process(hold) as pid:
        looked = Nameless(None).look([pid], BOUNDLESS)
    assert looked == (Found(0, is_whole=False) if os.getuid() else Found(own + 3 * MIB))


@pytest.mark.parametrize("are_sent", [True, False])
def test_a_look_is_not_whole_while_a_file_waits_in_a_socket(*, are_sent: bool) -> None:
    def hold() -> object:
        ends = socket.socketpair()
        if are_sent:
            socket.send_fds(ends[0], [b"x"], [1])
        return ends

    assert found(hold).is_whole is not are_sent


@pytest.mark.skipif(os.getuid() != 0, reason="what a mapping holds is shown to root")
def test_what_is_mapped_counts_without_a_descriptor_and_in_no_table_of_pages(own: int) -> None:
    def hold() -> object:
        anonymous = mmap.mmap(-1, 3 * MIB)
        anonymous.write(bytes(3 * MIB))
        anonymous.madvise(mmap.MADV_DONTNEED)
        return anonymous

    assert found(hold) == Found(own + 3 * MIB)


@pytest.mark.skipif(os.getuid() != 0, reason="to become other users needs root")
def test_who_watches_another_user_sees_it_all_by_three_capabilities_under_its_filter() -> None:
    low, high = few_uids(2)

    def hold() -> object:
        take_identity(Identity(high, high))
        linux.close_to_tracers()
        anonymous = mmap.mmap(-1, 3 * MIB)
        anonymous.write(bytes(3 * MIB))
        anonymous.madvise(mmap.MADV_DONTNEED)
        return memfd(), anonymous

    needed = (linux.CAP_DAC_READ_SEARCH, linux.CAP_SYS_PTRACE, linux.CAP_CHECKPOINT_RESTORE)
    garb = Garb(Identity(low, low), sum(1 << one for one in needed))
    with process(hold) as pid:

        def tell(_: object, say: Callable[[bytes], None]) -> None:
            looked = Nameless(high).look([pid], BOUNDLESS)
            say(f"{looked.taken} {looked.is_whole}".encode())
            linux.call(PIDFD_GETFD, os.pidfd_open(pid), 0, 0)

        one = fork(tell, [], replace(garb, program=watching(linux.MACHINE)))
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
        said = os.read(one.said_fd, 1000).decode()
        end(one)
    assert said.startswith(f"{6 * MIB} True!PermissionError")


def test_a_segment_counts_in_its_own_table_alone(own: int) -> None:
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p

    def hold() -> None:
        segment = libc.shmget(0, ctypes.c_size_t(3 * MIB), 0o600)
        ctypes.memset(libc.shmat(segment, None, 0), 1, 3 * MIB)
        libc.shmctl(segment, 0, None)  # IPC_RMID: gone with this process

    assert found(hold) == Found(own)


def test_no_stage_can_hold_more_shared_memory_than_the_machine_has() -> None:
    with process(lambda: memfd(64)):
        assert most_shared() >= 64 * MIB
