"""The known candidates of our kits at every isolation level, as root and as an ordinary user.

    python -m tests.attack.kits [--level LEVEL] [KIT ...]

Both kits to the end, unless some are named; one line for each that says how many candidates came
to what their expect.toml names, and one for each that did not, with what it came to when it was
judged once more. Where a stage has a user of its own
the command runs in a pid namespace of its own, beside three bystanders that must live. A busy
machine shows as `noisy_rig`, which no kit expects: it is a finding about the machine, and counted
apart. It ends with 1 when a verdict was another one both times, or a bystander died.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.attack.long_form import say
from tests.leased import lease_uids
from tests.levels import LEVELS, OWN_USER
from tests.namespaced import Namespace, possible
from tests.open_folder import open_folder
from tests.ordinary_user import ROOT, Ordinary, ordinary_user
from thermite.schema.stage import LevelName

KITS: Final = ("kits/smoke-cpu", "kits/demo-cpu")
ROOTS: Final[tuple[LevelName, ...]] = ("none", *OWN_USER)
ORDINARY: Final[tuple[LevelName, ...]] = ("none", "namespaces")
"""What each kind of user can be given (docs/reference/isolation.md, Levels)."""


Way: TypeAlias = Callable[..., "Told"]
"""How a kit is tested: it gets the kit, a level, and the candidates, all unless some are named."""


@dataclass(frozen=True)
class Told:
    """One `thermite kit test`: what its JSON said, or in words why there is none."""

    kit: str
    level: LevelName
    who: str
    seconds: float
    document: dict[str, Any] | None
    trouble: str = ""

    def different(self) -> dict[str, str]:
        """Return the candidates that did not come to what was expected, each with why."""
        if self.document is None:
            return {"": self.trouble}
        return {
            one["name"]: f"{one['verdict']}, expected {' or '.join(one['expected'])}:"
            f" {one['reason']}"
            for one in self.document["candidates"]
            if not one["ok"] and not one["skipped"]
        }

    def noisy(self) -> int:
        """Count the candidates that this machine was too busy to judge."""
        found = [] if self.document is None else self.document["candidates"]
        return sum(one["verdict"] == "noisy_rig" and not one["ok"] for one in found)

    def line(self) -> str:
        """Return the row of the table."""
        found = [] if self.document is None else self.document["candidates"]
        good = sum(bool(one["ok"] and not one["skipped"]) for one in found)
        left_out = sum(bool(one["skipped"]) for one in found)
        return (
            f"{self.kit:<10} {self.level:<17} {self.who:<9} {good:>2} of {len(found) - left_out:>2}"
            f" as expected, {left_out} left out, {self.noisy()} noisy_rig, {self.seconds:6.0f} s"
        )


def told(
    kit: str, level: LevelName, who: str, done: "subprocess.CompletedProcess[str]", seconds: float
) -> Told:
    """Return what one command has said."""
    document, trouble = None, ""
    try:
        document = json.loads(done.stdout)
    except ValueError:
        trouble = done.stderr.strip()[-300:] or "no answer"
    if document is None:
        return Told(Path(kit).name, level, who, seconds, None, trouble)
    return Told(Path(kit).name, level, who, seconds, document)


def as_root(kit: str, level: LevelName, *only: str) -> Told:
    """Test a kit as root, or some of its candidates."""
    env = {**os.environ, "THERMITE_ISOLATION": level}
    argv = [sys.executable, *_words(kit, only)]
    began = time.monotonic()
    with Namespace() as ns:
        prefix = ns.prefix if level in OWN_USER else []
        done = subprocess.run(
            [*prefix, *argv], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
    return told(kit, level, "root", done, time.monotonic() - began)


def as_ordinary(user: Ordinary, kit: str, level: LevelName, *only: str) -> Told:
    """Test a kit as an ordinary user, or some of its candidates."""
    began = time.monotonic()
    done = user.run(*_words(kit, only), THERMITE_ISOLATION=level)
    return told(kit, level, "ordinary", done, time.monotonic() - began)


def _words(kit: str, only: Sequence[str]) -> list[str]:
    chosen = [word for name in only for word in ("--only", name)]
    return ["-m", "thermite", "kit", "test", kit, "--json", *chosen]


def ways(levels: Sequence[LevelName], place: Path) -> Iterator[tuple[LevelName, Way]]:
    """Yield each level that this machine gives to root and to an ordinary user, and how."""
    if os.getuid() == 0:
        for level in [one for one in ROOTS if one in levels]:
            if level in OWN_USER and not possible():
                say(f"{level}: left out: no pid namespace of its own can be made here")
                continue
            yield level, as_root
    user = ordinary_user(place)
    if isinstance(user, str):
        say(f"as an ordinary user: left out: {user}")
        return
    for level in [one for one in ORDINARY if one in levels]:
        yield level, partial(as_ordinary, user)


def wrong_in(kit: str, level: LevelName, way: Way) -> int:
    """Test a kit, print what came of it, and return how many candidates were wrong twice."""
    first = way(kit, level)
    say(first.line())
    wrong = 0
    for name, why in first.different().items():
        second = way(kit, level, *([name] if name else []))
        wrong += bool(second.different())
        once_more = "; ".join(second.different().values()) or "as expected"
        say(f"  {name or kit}: {why}\n    once more: {once_more}")
    sys.stdout.flush()
    return wrong


def main() -> int:
    """Print the table."""
    asked = argparse.ArgumentParser(prog="python -m tests.attack.kits")
    asked.add_argument("--level", choices=LEVELS, action="append")
    asked.add_argument("kits", nargs="*", default=KITS, metavar="KIT")
    words = asked.parse_args()
    lease_uids()
    with open_folder() as place:
        wrong = sum(
            wrong_in(kit, level, way)
            for level, way in ways(words.level or LEVELS, place)
            for kit in words.kits
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
