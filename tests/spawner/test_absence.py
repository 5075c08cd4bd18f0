"""Asking the kernel whether a user has any process: no kill(-1) is near, each child is known."""

import os
import signal

import pytest

from thermite.spawner.absence import anybody, is_exact
from thermite.spawner.child import Identity

NOBODY_ELSE = 58991
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can take another user's id")


def test_a_process_that_lives_or_waits_to_be_buried_is_somebody() -> None:
    assert not anybody(NOBODY_ELSE)
    ready, said = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setresuid(NOBODY_ELSE, NOBODY_ELSE, NOBODY_ELSE)
        os.write(said, b"1")
        signal.pause()
    os.read(ready, 1)
    assert anybody(NOBODY_ELSE)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert anybody(NOBODY_ELSE)
    os.waitpid(pid, 0)
    assert not anybody(NOBODY_ELSE)
    os.close(ready)
    os.close(said)


def test_the_answer_is_trusted_only_where_a_trial_process_shows_in_it() -> None:
    assert is_exact(Identity(NOBODY_ELSE, NOBODY_ELSE))
    assert not is_exact(Identity(0, 0))
