"""Stages that all start at once have folders of their own and find nothing of each other (P10)."""

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.levels import LEVELS, rig_at, why_not
from tests.spawner.conftest import WIDE, Runner
from thermite.rig.stages import Stages
from thermite.schema.stage import LevelName

SLOTS = ("builder-0", "builder-1", "run-0", "run-1", "worker-0", "worker-1")
"""Of two lanes and of two judges."""
ROUNDS = 2
PATIENCE_S = 60.0
"""Much slack: when one has failed, the others wait for it no longer."""
PROGRAM = """
ls -A
echo {word} > mine
for turn in 1 2 3; do
  sleep 0.03
  for other in {others}; do
    ls "$other"
    cat "$other/mine"
    echo bad > "$other/mine"
    echo bad > "$other/more"
  done
done 2> /dev/null
ls -A
cat mine
pwd
"""
"""Says what it finds at first, whatever it can read of others' folders, and what it has at last."""


@dataclass
class Together:
    """What the threads of a test share: where each slot's stage is now, and what was seen."""

    rig: Stages
    into: Path
    is_closed: bool
    start: threading.Barrier = field(
        default_factory=lambda: threading.Barrier(len(SLOTS), timeout=PATIENCE_S)
    )
    folders: dict[str, Path] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)


def work(all_of: Together, name: str) -> None:
    for number in range(ROUNDS):
        with all_of.rig.slot(name) as slot:
            all_of.folders[name] = slot.folder
            all_of.start.wait()
            word, others = f"{name} {number}", {*all_of.folders.values()} - {slot.folder}
            told = " ".join(map(str, others)) if all_of.is_closed else ""
            text = PROGRAM.format(word=word, others=told)
            done = Runner(all_of.rig, slot).sh(text)
            all_of.start.wait()  # until then all folders are there
            kept = all_of.into / f"{name}-{number}"
            kept.mkdir()
            slot.collect(["mine"], kept, WIDE)
            *found, where = done.stdout.decode().splitlines()
            assert (done.exit_code, found) == (0, ["mine", word])
            assert (kept / "mine").read_text().strip() == word
            assert len(others) == len(SLOTS) - 1
            all_of.seen += [where]  # only now: a thread's failure shows as what is missing


@pytest.mark.parametrize("level", LEVELS)
def test_P10_stages_of_one_second_share_neither_folder_nor_file(  # noqa: N802
    home: Path, tmp_path: Path, level: LevelName
) -> None:
    """Each is told where the others are, and can neither list, read nor change what they have."""
    problem = why_not(level)
    if problem is not None:
        pytest.skip(problem)
    with rig_at(level, home, slots=dict.fromkeys(SLOTS, False)) as rig:
        has_landlock = any("landlock" in one for one in rig.isolation.features)
        is_closed = level != "none" or has_landlock
        all_of = Together(rig, tmp_path, is_closed)
        threads = [threading.Thread(target=work, args=(all_of, name)) for name in SLOTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(all_of.seen) == len(SLOTS) * ROUNDS
    assert len(set(all_of.seen)) == len(all_of.seen)
