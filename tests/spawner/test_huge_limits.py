"""C5: a limit may be any integer that JSON can carry, and a stage with it runs as without."""

import pytest

from tests.spawner.conftest import NewRig, Runner
from tests.spawner.realtime import needs_realtime
from thermite.schema.stage import CollectLimits, Limits

HUGE = [10**15, 2**43, 2**44, 2**53 - 1]


@pytest.mark.parametrize("limit", HUGE)
@pytest.mark.parametrize("name", ["timeout_s", "rss_mib", "disk_mib", "processes"])
def test_a_huge_limit_is_no_limit_and_no_overflow(run: Runner, name: str, limit: int) -> None:
    result = run.sh("head -c 1M /dev/zero > f; exit 3", **{name: limit})
    assert (result.exit_code, result.killed) == (3, None)


@needs_realtime
@pytest.mark.parametrize("limit", HUGE)
def test_a_timed_run_bears_a_huge_time(new_rig: NewRig, limit: int) -> None:
    with new_rig(realtime_runs=True) as rig, rig.block(), rig.slot("run-0") as slot:
        result = slot.run(
            ["sh", "-c", "exit 3"],
            env={"PATH": rig.path_variable},
            limits=Limits(timeout_s=limit, rss_mib=limit, disk_mib=limit, processes=limit),
            timed=True,
        )
    assert (result.exit_code, result.killed) == (3, None)


def test_outputs_may_be_as_large_as_a_count(
    run: Runner, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run.sh("mkdir out; echo 1 > out/a")
    into = tmp_path_factory.mktemp("into")
    huge = 2**53 - 1
    got = run.slot.collect(
        ["out"], into, CollectLimits(entries=huge, levels=huge, total_bytes=huge)
    )
    assert [one.path for one in got.files] == ["out/a"]
