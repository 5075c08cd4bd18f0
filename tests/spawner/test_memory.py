"""The sampler of memory asks of each process once whose it is, and misses none for that."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.leased import few_uids
from thermite.spawner.memory import Memory

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="processes of another user need root")


@contextmanager
def process(uid: int) -> Iterator[tuple[int, int]]:
    """Lend a process that takes a uid when its pipe is written to: its pid and that pipe's end."""
    go, given = os.pipe()
    done, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(go, 1)
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        os.write(said, b"1")
        while True:
            signal.pause()
    try:
        yield pid, given
    finally:
        for fd in (go, given, said):
            os.close(fd)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(done)


def become(pid: int, given: int, uid: int) -> None:
    os.write(given, b"1")
    while Path(f"/proc/{pid}").stat().st_uid != uid:
        pass


def test_a_stage_that_takes_its_user_after_the_first_sample_is_seen_at_the_next() -> None:
    uid, _ = few_uids(1)
    with process(uid) as (main, given):
        memory = Memory(uid, main, os.getpid(), most=1 << 40)
        assert memory.held_bytes() == 0
        become(main, given, uid)
        assert memory.held_bytes() > 0


def test_a_process_counts_from_its_first_sample_until_it_has_ended() -> None:
    uid, _ = few_uids(1)
    with process(uid) as (main, given):
        memory = Memory(uid, main, os.getpid(), most=1 << 40)
        become(main, given, uid)
        alone = memory.held_bytes()
        with process(uid) as (other, also_given):
            become(other, also_given, uid)
            assert memory.held_bytes() > 1.5 * alone
        assert memory.held_bytes() < 1.5 * alone


def test_a_number_that_has_become_the_stages_is_seen_within_a_second() -> None:
    """Here by a change of user, as no test can make the kernel give a number out again."""
    uid, _ = few_uids(1)
    with process(uid) as (main, given), process(uid) as (other, also_given):
        memory = Memory(uid, main, os.getpid(), most=1 << 40)
        become(main, given, uid)
        alone = memory.held_bytes()
        become(other, also_given, uid)
        samples = [memory.held_bytes() for _ in range(10)]  # ten a second
        assert samples[0] < 1.5 * alone < samples[-1]
