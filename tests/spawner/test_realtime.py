"""Real-time runs, where rig.toml asks for them (isolation, 4.1)."""

import os
import time

import pytest

from tests.spawner.conftest import NewRig, live
from tests.spawner.realtime import needs_realtime
from thermite.errors import InfrastructureError
from thermite.schema.stage import Limits

pytestmark = pytest.mark.measures

SPIN = "import os, signal\nprint(os.sched_getscheduler(0), flush=True)\nwhile 1: pass"
ASK = ["python3", "-I", "-S", "-c", "import os; print(os.sched_getscheduler(0))"]


@needs_realtime
def test_a_timed_run_is_fifo_and_everything_else_is_not(new_rig: NewRig) -> None:
    with new_rig(realtime_runs=True) as stages:
        assert "realtime" in stages.isolation.features
        with stages.slot("run-0") as slot:
            env, limits = {"PATH": stages.path_variable}, Limits(timeout_s=20)
            plain = slot.run(ASK, env=env, limits=limits)
            with stages.block():
                timed = slot.run(ASK, env=env, limits=limits, timed=True)
    assert plain.stdout.strip() == str(os.SCHED_OTHER).encode()
    assert timed.stdout.strip() == str(os.SCHED_FIFO).encode()


@needs_realtime
def test_a_real_time_spinner_is_ended_at_its_limit(new_rig: NewRig) -> None:
    with new_rig(realtime_runs=True) as stages, stages.slot("run-0") as slot:
        env = {"PATH": stages.path_variable}
        begun = time.monotonic()
        with stages.block():
            spun = slot.run(
                ["python3", "-I", "-S", "-c", SPIN], env=env, limits=Limits(timeout_s=1), timed=True
            )
        assert spun.killed == "timeout"
        assert time.monotonic() - begun < 30
        assert live(spun.isolation.uid) == 0


def test_without_users_of_their_own_runs_get_no_priority(new_rig: NewRig) -> None:
    with (
        pytest.raises(InfrastructureError, match=r"take it out of rig\.toml"),
        new_rig(isolation="none", realtime_runs=True),
    ):
        pass
