"""Real demos in a storm: each is killed at again and again, and must end as a quiet one does."""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.crash.storm import Storm, plan
from tests.namespaced import Namespace, possible
from tests.serving import ROOT, Serving, children_of

VICTIMS = {"harness": 4, "supervisor": 4}
"""Four of each: the fifth death within five minutes stops a rig, as it should."""
PAUSE_S = 0.02


class Demo(Serving):
    """One `thermite demo`, its rig in home/demo/rig."""

    def __init__(self, home: Path, namespace: Namespace | None) -> None:
        super().__init__(home / "demo" / "rig")
        prefix = namespace.prefix if namespace else []
        level = "none" if namespace is None else "users"
        self._is_inside = namespace is not None
        self._told = (home / "told.json").open("w+b")
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "thermite", "demo", str(home / "demo"), "--json"],
            stdin=subprocess.DEVNULL,
            stdout=self._told,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT), "THERMITE_ISOLATION": level},
        )

    def keeping(self) -> psutil.Process | None:
        """The demo itself."""
        with contextlib.suppress(psutil.NoSuchProcess):
            top = psutil.Process(self.process.pid)
            if not self._is_inside:
                return top
            below = [one for init in children_of(top) for one in children_of(init)]
            return next((one for one in below if children_of(one)), None)
        return None

    def told(self) -> dict[str, Any]:
        """What it said when it had ended; nothing when it said nothing."""
        with self._told as file:
            file.seek(0)
            raw = file.read()
        try:
            document: dict[str, Any] = json.loads(raw)
        except ValueError:
            return {}
        return document


@dataclass
class Outcome:
    """How one demo ended; promoted: proposals in order."""

    name: str
    seconds: float
    told: dict[str, Any]
    promoted: list[str]
    events: int
    kills: list[str] = field(default_factory=list)

    def differences(self, quiet: "Outcome") -> list[str]:
        """Return in words how this differs from the demo that nobody disturbed."""
        found = [] if self.told.get("ok") else [f"not ok: {json.dumps(self.told)[:400]}"]
        if self.promoted != quiet.promoted:
            found.append(f"promoted {self.promoted}, and the quiet one {quiet.promoted}")
        if set(self.told.get("verdicts", {})) != set(quiet.told.get("verdicts", {})):
            found.append("other candidates were judged")
        return found


def run_demo(name: str, *, seed: int | None, growth: int, keep: bool) -> Outcome:
    """Run one demo to its end; seed: of its storm, None for a quiet one."""
    home = Path(tempfile.mkdtemp(prefix=f"thermite-storm-{name}-", dir="/var/tmp"))
    home.chmod(0o711)
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        if not keep:
            stack.callback(shutil.rmtree, home, ignore_errors=True)
        namespace = stack.enter_context(Namespace()) if possible() else None
        demo = Demo(home, namespace)
        storm = Storm(demo, plan(seed, VICTIMS, growth) if seed is not None else [])
        while demo.process.poll() is None:
            storm.step()
            time.sleep(PAUSE_S)
        return Outcome(
            name, time.monotonic() - begun, demo.told(), promoted(demo), demo.size, storm.done
        )


def promoted(demo: Demo) -> list[str]:
    """Return the proposals that became champions, in order."""
    campaign = demo.assignment
    if campaign is None:
        return []
    return [str(campaign.attempts[p.attempt].started.proposal) for p in campaign.promotions]


def main(argv: Sequence[str]) -> int:
    """Run the demos, print a table, and return 0 when none differs."""
    parser = argparse.ArgumentParser(prog="demo_storm", description=__doc__)
    parser.add_argument("demos", nargs="?", type=int, default=20, help="how many (20)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first storm (1)")
    parser.add_argument("--keep", action="store_true", help="leave the demos' folders")
    asked = parser.parse_args(argv)
    quiet = run_demo("quiet", seed=None, growth=1, keep=asked.keep)
    bad = _shown(quiet, quiet)
    growth = max(2, quiet.events // (sum(VICTIMS.values()) + 2))
    for number in range(asked.demos):
        seed = asked.seed + number
        stormy = run_demo(
            f"seed {seed}".replace(" ", "-"), seed=seed, growth=growth, keep=asked.keep
        )
        bad += _shown(stormy, quiet)
    sys.stdout.write(f"{asked.demos} demos in a storm, {bad} of all differ\n")
    return 1 if bad else 0


def _shown(outcome: Outcome, quiet: Outcome) -> int:
    """Print a demo's row and return how many differences it has, at most 1."""
    differences = outcome.differences(quiet)
    verdicts = outcome.told.get("verdicts", {})
    row = (
        f"{outcome.name:<10} {outcome.seconds:6.0f} s  {len(outcome.kills)} kills"
        f"  {len(verdicts)} judged  promoted {', '.join(outcome.promoted) or 'none'}"
        f"  {'; '.join(differences) or 'as it should be'}\n"
    )
    sys.stdout.write(row)
    for kill in outcome.kills if differences else []:
        sys.stdout.write(f"    killed {kill}\n")
    sys.stdout.flush()
    return bool(differences)
