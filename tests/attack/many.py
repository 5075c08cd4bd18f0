"""The long form: a thousand adversarial stages on one rig, and a count of what survived.

    python -m tests.attack.many [COUNT] [LEVEL ...]

COUNT stages at each level that this machine gives, unless some are named: as root `none` and the
levels with users of their own, which need CAP_SYS_ADMIN; as a plain user `none` and `namespaces`.
Where a slot has a user of its own everything runs in a pid namespace of its own, which proves
itself first, beside three bystanders that must live. It ends with 1 when anything of a stage was
left, an attack came to something, or a bystander died.
"""

import statistics
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.attack.candidates import ATTACKS, Attack
from tests.attack.long_form import at_length, say
from tests.levels import LEVELS, OWN_USER, rig_at
from tests.spawner.conftest import Runner, live
from thermite.rig.stages import Stages
from thermite.schema.stage import LevelName, StageResult

_ROWS: Final = {"1", "2", "10", "18", "B7"}
"""Those that try to live on: survivors, killers of the killer, demoters, bombs, comets, setuid,
daemons that hold the output, and a main process that waits for them."""
COUNT: Final = 1000


@dataclass
class Seen:
    """What came of some stages: what went wrong in words, each end's ms, and who was left."""

    problems: list[str] = field(default_factory=list)
    ends_ms: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    survivors: int = 0


def hostile_at(level: LevelName) -> list[Attack]:
    """Return the attacks of a level that try to live on."""
    return [one for one in ATTACKS if one.name.partition("-")[0] in _ROWS and level in one.levels]


def left_of(level: LevelName, result: StageResult) -> int:
    """Count what is left of a stage, by its proof and, where it has a user, by our own look."""
    proof = result.isolation.proof
    told = 1 if proof is None else proof.survivors
    return max(told, live(result.isolation.uid) if level in OWN_USER else 0)


def run(rig: Stages, level: LevelName, count: int) -> Seen:
    """Run so many stages, each attack in turn."""
    seen = Seen()
    attacks = hostile_at(level)
    for number in range(count):
        attack = attacks[number % len(attacks)]
        with rig.slot("run-0") as slot:
            result = Runner(rig, slot).python(attack.program, **attack.limits)
        left = left_of(level, result)
        seen.survivors += left
        if left:
            seen.problems.append(f"{attack.name}: {left} processes survived")
        if result.killed != attack.killed:
            seen.problems.append(
                f"{attack.name}: ended by {result.killed}, and {attack.killed} was to be"
            )
        if result.isolation.proof is not None:
            seen.ends_ms.append(result.isolation.proof.kill_ms)
            seen.rounds.append(result.isolation.proof.rounds)
    return seen


def at(level: LevelName, count: int) -> bool:
    """Run the stages at one level and print what came of them; true when nothing was wrong."""

    def work(place: Path) -> Seen:
        with rig_at(level, place) as rig:  # its bystanders must live
            return run(rig, level, count)

    done = at_length(level, work)
    if done is None:
        return True
    seen, took_s = done
    hundredths = statistics.quantiles(seen.ends_ms, n=100, method="inclusive")
    say(
        f"{level}: {count} adversarial stages ({len(hostile_at(level))} kinds) in {took_s:.0f} s:"
        f" {seen.survivors} survivors, {len(seen.problems)} wrong; end to proven zero: median"
        f" {hundredths[49]:.1f} ms, p99 {hundredths[98]:.1f} ms, worst {max(seen.ends_ms):.1f} ms,"
        f" at most {max(seen.rounds)} rounds"
    )
    if level in OWN_USER:
        say("  bystanders alive: 3 of 3")
    for text, times in Counter(seen.problems).most_common():
        say(f"  {times} times {text}")
    sys.stdout.flush()
    return not seen.problems


def main(words: list[str]) -> int:
    """Run the stages at each level that is named, or at all."""
    named = [level for level in LEVELS if level in words] or LEVELS
    count = next((int(word) for word in words if word.isdigit()), COUNT)
    done = [at(level, count) for level in named]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
