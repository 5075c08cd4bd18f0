"""A run that gives itself CPUs beside those that it was given is told of (row 27)."""

import os

import pytest

from tests.levels import LEVELS, Rigs
from tests.spawner.conftest import Runner
from thermite.schema.stage import LevelName

WIDEN = "os.sched_setaffinity(0, range(os.cpu_count()))"
PAUSES_S = (0.5, 8)
"""Time for some looks, and for as many on a machine whose looker gets no turn."""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU: there is none beside it")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("body", "is_seen"),
    [
        pytest.param("time.sleep(0.25)", False, id="27-stays"),
        pytest.param(WIDEN, True, id="27-widens-to-its-end"),
        pytest.param(
            f"if os.fork() == 0: {WIDEN}; time.sleep(30)\ntime.sleep(PAUSE)",
            True,
            id="27-widens-a-child",
        ),
        pytest.param(
            "import threading\n"
            f"def widen(): {WIDEN}; time.sleep(PAUSE)\n"
            "one = threading.Thread(target=widen)\none.start()\none.join()",
            True,
            id="27-widens-a-thread",
        ),
        pytest.param(
            f"mine = os.sched_getaffinity(0); {WIDEN}; time.sleep(PAUSE)\n"
            "os.sched_setaffinity(0, mine)",
            True,
            id="27-widens-and-goes-back",
        ),
    ],
)
def test_a_run_on_other_cpus_than_it_was_given_says_so_in_its_record(
    rigs: Rigs, body: str, is_seen: bool, level: LevelName
) -> None:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        run = Runner(rig, slot, timed=True)
        for pause in PAUSES_S if is_seen else PAUSES_S[:1]:
            result = run.python(f"import os, time\nPAUSE = {pause}\n{body}\n", rss_mib=256)
            assert (result.killed, result.exit_code) == (None, 0), result.stderr
            if result.record.affinity_changed is is_seen:
                break
        assert result.record.affinity_changed is is_seen
        assert len(result.record.cpus) < len(os.sched_getaffinity(0))
        run.timed = False  # untimed stages are nowhere in particular
        assert not run.python(f"import os\n{WIDEN}\n", rss_mib=256).record.affinity_changed
