"""The long form: a thousand adversarial stages on one rig, and a count of what survived.

    python -m tests.attack.many 1000 [LEVEL]

At level users, unless another is named. It needs root and CAP_SYS_ADMIN: everything runs in a
pid namespace of its own, which proves itself first, beside three bystanders that must live. It
ends with 1 when anything of a stage was left, an attack came to something, or a bystander died.
"""

import sys
from collections import Counter
from pathlib import Path

from tests.attack.candidates import ATTACKS, Attack
from tests.attack.long_form import at_length, say
from tests.levels import OWN_USER, rig_at
from tests.spawner.conftest import Runner, live
from thermite.rig.stages import Stages
from thermite.schema.stage import LevelName, StageResult

HOSTILE = tuple(
    attack for attack in ATTACKS if attack.name.partition("-")[0] in {"1", "2", "10", "18", "B7"}
)
"""Those that try to live on: survivors, killers of the killer, bombs, comets, setuid, daemons."""


def wrong(attack: Attack, result: StageResult) -> str | None:
    """Return what went wrong with one stage, None when nothing did."""
    proof = result.isolation.proof
    left = live(result.isolation.uid)
    if proof is None or proof.survivors or left:
        counted = "no proof" if proof is None else f"{proof.survivors} by its own proof"
        return f"{attack.name}: {left} processes survived, {counted}"
    if result.killed != attack.killed:
        return f"{attack.name}: ended by {result.killed}, and {attack.killed} was to be"
    return None


def run(rig: Stages, count: int) -> tuple[list[str], list[float]]:
    """Run so many stages; return what went wrong, and each end's milliseconds."""
    problems: list[str] = []
    ends: list[float] = []
    for number in range(count):
        attack = HOSTILE[number % len(HOSTILE)]
        with rig.slot("run-0") as slot:
            result = Runner(rig, slot).python(attack.program, **attack.limits)
        problem = wrong(attack, result)
        if problem is not None:
            problems.append(problem)
        if result.isolation.proof is not None:
            ends.append(result.isolation.proof.kill_ms)
    return problems, ends


def main(argv: list[str]) -> int:
    """Run the stages and print the count."""
    count = int(argv[1]) if len(argv) > 1 else 50
    level: LevelName = next((one for one in OWN_USER if one in argv[2:]), "users")

    def work(place: Path) -> tuple[list[str], list[float]]:
        with rig_at(level, place) as rig:  # its bystanders must live
            return run(rig, count)

    done = at_length(level, work)
    if done is None:
        return 1
    (problems, ends), took_s = done
    ends.sort()
    say(f"{count} adversarial stages at level {level} in {took_s:.0f} s: {len(problems)} wrong")
    say(f"end to proven zero: median {ends[len(ends) // 2]:.1f} ms, worst {ends[-1]:.1f} ms")
    say("bystanders alive: 3 of 3")
    for text, times in Counter(problems).most_common():
        say(f"  {times} times {text}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
