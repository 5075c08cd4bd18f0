"""Two rigs that judge at once on one machine: no stage of one is ended by the other (row 37)."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attack.together import Seen, problems, together
from tests.namespaced import Namespace, possible
from tests.open_folder import open_folder
from thermite.rig.stages import Stages
from thermite.rig.start import spawner
from thermite.schema.stage import Limits

BLOCKS, RUNS = 6, 4
BUSY = "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; setsid sleep 99 &"
"""Each run leaves a survivor, so that every end takes a kill."""

Span = tuple[str, float, float]


def blocks(name: str, rig: Stages, seen: list[Span], wrong: list[object]) -> None:
    for _ in range(BLOCKS):
        with rig.slot("run-0") as slot, rig.block():
            began = time.monotonic()
            for _ in range(RUNS):
                result = slot.run(
                    ["sh", "-c", BUSY],
                    env={"PATH": rig.path_variable},
                    limits=Limits(timeout_s=30, rss_mib=256, disk_mib=16, processes=64),
                    timed=True,
                )
                proof = result.isolation.proof
                if (result.killed, result.exit_code) != (None, 0) or proof is None:
                    wrong.append(result)
            seen.append((name, began, time.monotonic()))


@contextlib.contextmanager
def two_rigs() -> Iterator[tuple[Stages, Stages]]:
    """Two rigs that share uids, CPUs and clock locks, each with three bystanders."""
    with open_folder() as place:
        own: dict[str, Any] = {"isolation": "users", "run_dir": place / "run"}
        with (
            Namespace() as one,
            Namespace() as two,
            spawner(place / "one", within=one.prefix, **own) as first,
            spawner(place / "two", within=two.prefix, **own) as second,
        ):
            yield first, second
            assert (one.bystanders(), two.bystanders()) == (3, 3)


def test_two_rigs_judge_at_once_and_never_time_at_once() -> None:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    seen: list[Span] = []
    wrong: list[object] = []
    with two_rigs() as (first, second):
        threads = [
            threading.Thread(target=blocks, args=(name, rig, seen, wrong))
            for name, rig in (("first", first), ("second", second))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert len(seen) == 2 * BLOCKS
    order = sorted(seen, key=lambda one: one[1])
    for (_, _, end), (_, began, _) in itertools.pairwise(order):
        assert began >= end


def test_37_two_rigs_that_judge_at_once_call_nobody_a_crash(home: Path) -> None:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    both = together(home, 2)  # the long form is `python -m tests.attack.together 50`
    assert problems(*both, 2) == []


def test_37_blocks_that_overlap_would_be_seen() -> None:
    one = Seen("one", ["not_better"], [], [(10.0 + n, 10.5 + n) for n in range(6)])
    other = Seen("two", ["crash_candidate"], ["killed"], [(10.6 + n, 10.9 + n) for n in range(6)])
    assert problems(one, other, 1) == ["two: 1 crashes, ['killed']"]
    other.blocks[3] = (13.25, 13.75)
    assert problems(one, other, 1)[1:] == ["1 blocks overlap, by up to 0.250 s"]
