"""Caches that compilers for kernels keep between runs, and their locks in /tmp (B14).

Each stage does what such a compiler does: it makes `$HOME/.cache` and `$HOME/.triton`, and in /tmp
a lock of a fixed name that is its alone. Where /tmp is closed to stages (level none), it is closed
to each of them, and `TMPDIR` leads home.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.judge.real.workshop import KIT_FILES, change, doing, furnish, wanted, write
from tests.levels import LEVELS, Rigs, rig_at, why_not
from tests.open_folder import open_folder
from tests.requirement import shows
from thermite.rig.stages import Slot, Stages
from thermite.schema.event import Build, Run
from thermite.schema.stage import LevelName, Limits, StageResult

HAS_TMP = [level for level in LEVELS if level != "none"]
OWN_TMP = [level for level in LEVELS if "namespaces" in level]
"""Where it is memory of the stage's own, which the memory limit bounds."""
COUNTS_TMP = [level for level in HAS_TMP if level not in OWN_TMP]
SLOTS = ("builder-0", "run-0", "run-1")
ARMS = ("champion", "candidate")
LEAVE = """
umask 077
for at in "$HOME/.cache/jit/lock" "$HOME/.triton/jit/lock" {}; do
  if [ -e "$at" ]; then echo "$at is there: $(cat "$at")"; exit 4; fi
  mkdir -p "${{at%/*}}" && (set -C; echo "$0" > "$at") || exit 5
  stat -c '%a' "$at"
  cat "$at"
done
"""
FILL = """
import os, sys, time
for folder in sys.argv[1:]:
    folder = os.path.expandvars(folder)
    os.makedirs(folder)
    for n in range(4): open(f"{folder}/{n}", "wb").write(bytes(1 << 20))
time.sleep(20)
"""
IN_TMP = f"/tmp/thermite-jit-{os.getpid()}"
"""Fixed for all stages of a test, and no other test's on this machine."""
CACHES = ("$HOME/.cache/jit", "$HOME/.triton/jit")


@contextlib.contextmanager
def rig_of(level: LevelName) -> Iterator[Stages]:
    problem = why_not(level)
    if problem is not None:
        pytest.skip(problem)
    with open_folder() as place, rig_at(level, place, slots=dict.fromkeys(SLOTS, False)) as rig:
        yield rig


def run(rig: Stages, slot: Slot, *argv: str, **limits: float) -> StageResult:
    home = str(slot.folder)
    env = {"PATH": rig.path_variable, "HOME": home, "TMPDIR": home}
    return slot.run(argv, env=env, limits=Limits(**{"timeout_s": 20, **limits}))  # type: ignore[arg-type]


@shows("B14")
@pytest.mark.parametrize("level", LEVELS)
def test_a_cache_and_a_lock_work_in_every_slot_and_the_next_arm_finds_nothing(
    level: LevelName,
) -> None:
    lock = f"{IN_TMP}.lock" if level in HAS_TMP else '"$TMPDIR/jit.lock"'
    with rig_of(level) as rig:
        for name, arm in [(name, arm) for name in SLOTS for arm in ARMS]:
            with rig.slot(name) as slot:
                done = run(rig, slot, "sh", "-c", LEAVE.format(lock), f"{arm} in {name}")
            assert (done.exit_code, done.stderr) == (0, b""), done
            assert done.stdout.decode().splitlines() == ["600", f"{arm} in {name}"] * 3


FEW = {
    "settle_ms": 0,
    "warmup_runs": 0,
    "min_blocks": 6,
    "max_blocks": 6,
    "startup_share_max": 1.0,
    "max_discard_share": 0.9,
}


@shows("B14")
def test_both_arms_of_an_attempt_build_and_run_beside_their_caches(
    rigs: Rigs, tmp_path: Path
) -> None:
    lent = furnish(tmp_path, rigs.at("users"))
    leave = LEAVE.format(f"{IN_TMP}.lock")
    change(lent, "cells", small={"n": 400000, "work": 1})
    write(lent.kit, {"bench/build.sh": f"{leave}\n{KIT_FILES['bench/build.sh']}"})
    source = doing(f"if (system({json.dumps(leave)})) exit(7);")
    other = lent.commit({"sum.c": source.replace("volatile", "static volatile")})
    lent.judged(source, champion=other, contract=wanted(judging=FEW, held_out_cells=[]))
    assert [(one.arm, one.outcome) for one in lent.of(Build)] == [
        ("champion", "ok"),
        ("candidate", "ok"),
    ]
    runs = [(one.arm, one.outcome) for one in lent.of(Run)]
    assert runs.count(("champion", "ok")) >= 6
    assert runs.count(("candidate", "ok")) >= 6
    assert set(runs) == {("champion", "ok"), ("candidate", "ok")}


@shows("B14")
def test_where_tmp_is_closed_a_lock_there_is_in_nobodys_way(rigs: Rigs) -> None:
    rig = rigs.at("none")
    if not any(one.startswith("landlock") for one in rig.isolation.features):
        pytest.skip("this kernel keeps nobody from /tmp")
    for _ in ARMS:
        with rig.slot("run-0") as slot:
            done = run(rig, slot, "sh", "-c", f"set -C; : > {IN_TMP}.lock")
        assert b"Permission denied" in done.stderr


@shows("B14")
@pytest.mark.parametrize("level", LEVELS)
def test_caches_count_against_the_disk_limit(rigs: Rigs, level: LevelName) -> None:
    """Of 4 MiB each, so that each of them has to be counted for the limit to be crossed."""
    rig = rigs.at(level)
    places = [*CACHES, *([IN_TMP] if level in COUNTS_TMP else [])]
    with rig.slot("run-0") as slot:
        most = 4 * len(places) - 1
        done = run(rig, slot, "python3", "-c", FILL, *places, disk_mib=most)
    assert (done.killed, done.stderr) == ("disk", b"")


@shows("B14")
@pytest.mark.parametrize("level", OWN_TMP)
def test_a_tmp_of_the_stages_own_is_bounded(rigs: Rigs, level: LevelName) -> None:
    with rigs.at(level).slot("run-0") as slot:
        fill = f"head -c 26M /dev/zero > {IN_TMP}; stat -c %s {IN_TMP}"
        done = run(rigs.at(level), slot, "sh", "-c", fill, rss_mib=24, disk_mib=64)
    assert (done.killed, done.stdout) == (None, b"%d\n" % (24 << 20))
    assert b"No space left on device" in done.stderr
