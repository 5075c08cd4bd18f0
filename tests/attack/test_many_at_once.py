"""Stages that all start at once have folders of their own and find nothing of each other (P10)."""

import threading
from pathlib import Path

import pytest

from tests.levels import LEVELS, rig_at, why_not
from tests.spawner.conftest import WIDE, Runner
from thermite.rig.stages import Stages
from thermite.schema.stage import LevelName

SLOTS = ("builder-0", "builder-1", "run-0", "run-1", "worker-0", "worker-1")
ROUNDS = 5
PATIENCE_S = 60.0
"""Much slack: when one has failed, the others wait for it no longer."""


def work(rig: Stages, name: str, into: Path, start: threading.Barrier, seen: list[str]) -> None:
    for number in range(ROUNDS):
        start.wait()
        with rig.slot(name) as slot:
            word = f"{name} {number}"
            done = Runner(rig, slot).sh(f"ls -A; echo {word} > mine; sleep 0.02; cat mine; pwd")
            kept = into / f"{name}-{number}"
            kept.mkdir()
            slot.collect(["mine"], kept, WIDE)
            said, where = done.stdout.decode().splitlines()
            assert (done.exit_code, said) == (0, word)
            assert (kept / "mine").read_text().strip() == word
            seen += [where]  # only now: a thread's failure shows as what is missing


@pytest.mark.parametrize("level", LEVELS)
def test_P10_stages_of_one_second_share_neither_folder_nor_file(  # noqa: N802
    home: Path, tmp_path: Path, level: LevelName
) -> None:
    problem = why_not(level)
    if problem is not None:
        pytest.skip(problem)
    start = threading.Barrier(len(SLOTS), timeout=PATIENCE_S)
    seen: list[str] = []
    with rig_at(level, home, slots=dict.fromkeys(SLOTS, False)) as rig:
        threads = [
            threading.Thread(target=work, args=(rig, name, tmp_path, start, seen)) for name in SLOTS
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(seen) == len(SLOTS) * ROUNDS
    assert len(set(seen)) == len(seen)
