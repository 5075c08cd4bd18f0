"""Two rigs that judge at once on one machine, each a row of attempts (row 37), the long form.

    python -m tests.attack.together 50

It needs root and CAP_SYS_ADMIN: each rig lives in a pid namespace of its own, which proves itself
first, beside three bystanders that must live; leases of users and clock locks are shared. Runs
are trivial and leave a process behind each, so that every end takes a kill. It ends with 1 when
an attempt was called a crash, or blocks of the two rigs overlapped.
"""

import datetime as dt
import itertools
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.long_form import at_length, say
from tests.crash.sleeper import BUILD, CHECK, KIT
from tests.judge.real.workshop import write
from tests.levels import rig_at
from thermite.harness.local_job import LocalJudge, local_contract
from thermite.harness.rig import open_bench
from thermite.kit.manifest import load_kit
from thermite.ledger.replay import recorded
from thermite.schema.event import Run
from thermite.schema.rig_settings import RigSettings

PROGRAM = 'setsid sleep 99 &\nsleep 0.01\n: {}\necho right > "$1/answer"\n'
FEWEST = 6
"""Blocks of an attempt: a screen can pass with no fewer."""
FEW = {
    "settle_ms": 0,
    "warmup_runs": 0,
    "min_blocks": FEWEST,
    "max_blocks": FEWEST,
    "startup_share_max": 1.0,
    "max_discard_share": 0.9,
}
TO_THE_MS = 0.001
"""A run's start is written down to the millisecond (schema.stage.RunRecord)."""


@dataclass
class Seen:
    """What one rig came to: verdicts, blocks as wall times (s), and what stopped it."""

    name: str
    verdicts: list[str] = field(default_factory=list)
    crash_reasons: list[str] = field(default_factory=list)
    blocks: list[tuple[float, float]] = field(default_factory=list)
    error: BaseException | None = None


def block_of(runs: Iterable[Run]) -> tuple[float, float]:
    """Return when the first run of a block began and the last one ended."""
    times = []
    for run in runs:
        if run.record is not None:
            began = dt.datetime.fromisoformat(run.record.started_at).timestamp()
            times.append((began, began + run.record.t_ns / 1e9))
    return min(began for began, _ in times), max(end for _, end in times)


def blocks_of(ledger: Path) -> list[tuple[float, float]]:
    """Return the blocks that a ledger tells of."""
    events = [(one.event.assignment, getattr(one.event, "data", None)) for one in recorded(ledger)]
    runs = [(assignment, told) for assignment, told in events if isinstance(told, Run)]
    together = itertools.groupby(runs, key=lambda one: (one[0], one[1].stage, one[1].block))
    return [block_of(run for _, run in some) for _, some in together]


def judge_many(place: Path, count: int, seen: Seen) -> None:
    """Judge so many candidates on a rig of its own."""
    kit, project = place / f"{seen.name}-kit", place / f"{seen.name}-project"
    with rig_at("users", place, seen.name) as stages:
        bench = open_bench(place / seen.name, stages, RigSettings())
        try:
            judge = LocalJudge(bench, kit, "sleeper")
            fields: dict[str, object] = {
                "cells": ["nap"],
                "objective": {"primary": {"metric": "seconds", "direction": "min"}},
                "judging": FEW,
            }
            contract = local_contract(load_kit(kit), judge.kit, fields)
            write(project, {"program.sh": PROGRAM.format("champion")})
            champion = judge.commit(project)
            for number in range(count):
                write(project, {"program.sh": PROGRAM.format(number)})
                found = judge.judge(judge.commit(project), champion, contract)
                seen.verdicts.append(found.verdict.verdict)
                if found.verdict.verdict.startswith("crash_"):
                    seen.crash_reasons += found.verdict.reasons
        finally:
            bench.book.close()
    seen.blocks = blocks_of(place / seen.name / "ledger.db")


def together(place: Path, count: int) -> tuple[Seen, Seen]:
    """Let two rigs judge so many candidates each, at once."""
    both = Seen("one"), Seen("two")

    def guarded(seen: Seen) -> None:
        try:
            judge_many(place, count, seen)
        except BaseException as error:  # noqa: BLE001 - raised by the caller
            seen.error = error

    threads = [threading.Thread(target=guarded, args=(seen,)) for seen in both]
    for seen in both:
        files = {"kit.json": json.dumps(KIT), "build.sh": BUILD, "check.sh": CHECK}
        write(place / f"{seen.name}-kit", files)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seen in both:
        if seen.error is not None:
            raise seen.error
    return both


def overlaps(one: Seen, other: Seen) -> list[float]:
    """Return how long, s, each two blocks of the two rigs were measured at once."""
    pairs = itertools.product(one.blocks, other.blocks)
    common = (min(a[1], b[1]) - max(a[0], b[0]) for a, b in pairs)
    return [seconds for seconds in common if seconds > TO_THE_MS]


def problems(one: Seen, other: Seen, count: int) -> list[str]:
    """Return what must not have been."""
    found = []
    for seen in (one, other):
        if len(seen.verdicts) != count:
            found.append(f"{seen.name}: {len(seen.verdicts)} of {count} verdicts")
        crashes = [verdict for verdict in seen.verdicts if verdict.startswith("crash_")]
        if crashes:
            why = [reason for reason, _ in Counter(seen.crash_reasons).most_common(3)]
            found.append(f"{seen.name}: {len(crashes)} crashes, {why}")
        whole = count - seen.verdicts.count("guard_failed")  # on noise such a one ends early
        if len(seen.blocks) < FEWEST * whole:
            found.append(f"{seen.name}: only {len(seen.blocks)} blocks")
    common = overlaps(one, other)
    if common:
        found.append(f"{len(common)} blocks overlap, by up to {max(common):.3f} s")
    return found


def main(argv: list[str]) -> int:
    """Run the long form and print what came of it."""
    count = int(argv[1]) if len(argv) > 1 else 50
    done = at_length("users", lambda place: together(place, count))
    if done is None:
        return 1
    both, took_s = done
    say(f"2 rigs, {count} attempts each, in {took_s:.0f} s; bystanders lived")
    for seen in both:
        told = ", ".join(f"{n} {kind}" for kind, n in Counter(seen.verdicts).most_common())
        say(f"rig {seen.name}: {told}; {len(seen.blocks)} blocks")
    found = problems(*both, count)
    for text in found or ["no crash, and no two blocks overlap"]:
        say(text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
