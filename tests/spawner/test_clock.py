"""What is read beside the clock: time that a host steals counts where it holds a run up."""

import os
from pathlib import Path

import pytest

from thermite.spawner import clock

STAT = (
    b"cpu  900 0 0 0 0 0 0 77 0 0\n"
    b"cpu0 300 0 0 0 0 0 0 40 0 0\n"
    b"cpu1 300 0 0 0 0 0 0 30 0 0\n"
    b"cpu12 300 0 0 0 0 0 0 7 0 0\n"
    b"intr 1 2 3\nctxt 4\nbtime 1700000000\n"
)


@pytest.mark.parametrize(
    ("cpus", "ticks"),
    [
        pytest.param([1], 30, id="the run's own"),
        pytest.param([0, 12], 47, id="all that it may use"),
        pytest.param([1, 2], 77, id="one that is not told of: as before, all"),
        pytest.param([], 77, id="none named"),
    ],
)
def test_what_is_stolen_from_other_cpus_disturbs_no_run(cpus: list[int], ticks: int) -> None:
    assert clock._stolen(cpus, STAT) == ticks


def test_this_machine_tells_of_each_of_its_cpus() -> None:
    text = Path("/proc/stat").read_bytes()
    told = clock.counters(os.sched_getaffinity(0), None).steal_ticks
    assert told is not None
    assert told <= clock._stolen([], Path("/proc/stat").read_bytes())
    assert clock._stolen([999_999], text) == clock._stolen([], text)
