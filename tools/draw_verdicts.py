"""Draw the figures of docs/explanation/how-a-verdict-is-reached.md.

    draw_verdicts.py                draws docs/explanation/figures/*.svg from numbers.json there
    draw_verdicts.py --simulate     makes numbers.json anew first, from seed 1: some minutes
    draw_verdicts.py --into DIR     draws elsewhere

The numbers are what the judge's own code decides on simulated runs: attempts and shares by
`thermite.judge.simulate`, the rules by `thermite judge simulate --json`.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from html import escape
from pathlib import Path
from random import Random
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from thermite.cli.judge_simulate import noise_named
from thermite.judge.simulate.attempt import SignFlip, Timed, parameters, speeds
from thermite.judge.simulate.campaign import campaign
from thermite.judge.simulate.edit import Machine, gain_of
from thermite.judge.simulate.figures import promoted
from thermite.judge.simulate.noise import MODELS, Noise
from thermite.judge.simulate.recorded import resampled
from thermite.judge.verdict.walk import walk
from thermite.schema.contract_rules import confirm_evidence

ROOT: Final = Path(__file__).parents[1]
FIGURES: Final = ROOT / "docs/explanation/figures"
NUMBERS: Final = "numbers.json"
NOISES: Final = ("quiet", "heavy", "loaded")
SHOWN_ATTEMPTS: Final = ((0.05, 0.03), (0.0, 0.03), (0.02, 0.03))
"""True gain and min_effect of the attempts whose evidence is drawn."""
GAINS: Final = tuple(round(0.0025 * step, 4) for step in range(25))
MIN_EFFECTS: Final = (0.03, 0.005)
TRIES: Final = 400
"""Attempts of each gain: a share is known to 5 points at worst."""
CAMPAIGNS: Final = ("--campaigns", "20", "--attempts", "200", "--seed", "1")

INK: Final = "#24292f"
PALE: Final = "#d0d7de"
COLOURS: Final = ("#0969da", "#bc4c00", "#8250df")
WIDTH, HEIGHT = 680.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 150.0, 34.0, 46.0


# ---- the numbers


def noise_of(name: str) -> Noise:
    """Return a noise that `thermite judge simulate` knows by name."""
    source, _ = noise_named(name)
    return MODELS[source] if isinstance(source, str) else resampled(source)


def attempt(gain: float, min_effect: float) -> dict[str, Any]:
    """Return one attempt on quiet noise, decision by decision."""
    p, seed = parameters(min_effect), f"figure/{gain}/{min_effect}"
    machine = Machine(noise_of("quiet"), Random(seed))  # noqa: S311 - a seed, no secret
    timed = Timed(p, bytes(32), 1, speeds(p, gain_of(gain), 0.0), machine)
    steps = list(walk(timed.block, p, 1))
    return {
        "gain": gain,
        "min_effect": min_effect,
        "needs": {
            "screen": -math.log(p.judging.screen_alpha),
            "confirm": confirm_evidence(p.judging, 1),
        },
        "result": steps[-1].ruling.result,
        "steps": [
            {"stage": one.stage, "ln_e": round(one.ruling.ln_e, 4), "t": round(one.ruling.t, 6)}
            for one in steps
        ],
    }


def share(name: str, min_effect: float, gain: float) -> float:
    """Return the share of attempts of one true gain that is promoted on a noise."""
    p, noise = parameters(min_effect), noise_of(name)
    tries = [
        campaign(
            lambda order: SignFlip(p, order),
            lambda _: [gain_of(gain)],
            noise,
            f"figure/{name}/{min_effect}/{gain}/{number}",
        )
        for number in range(TRIES)
    ]
    return promoted(tries).share


def rules(name: str) -> dict[str, Any]:
    """Return what `thermite judge simulate --json` says of each rule on a noise."""
    argv = [sys.executable, "-m", "thermite", "judge", "simulate", "--noise", name]
    done = subprocess.run(  # noqa: S603 - our own command
        [*argv, *CAMPAIGNS, "--json"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def simulated() -> dict[str, Any]:
    """Return all numbers, made by a process on each processor."""
    asked = [(n, m, g) for n in NOISES for m in MIN_EFFECTS for g in GAINS]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        shares = list(pool.map(share, *zip(*asked, strict=True)))
    power: dict[str, dict[str, list[list[float]]]] = {}
    for (name, min_effect, gain), found in zip(asked, shares, strict=True):
        power.setdefault(str(min_effect), {}).setdefault(name, []).append([gain, found])
    return {
        "made_by": "tools/draw_verdicts.py --simulate",
        "noises": {name: noise_named(name)[1] for name in NOISES},
        "attempts": [attempt(*one) for one in SHOWN_ATTEMPTS],
        "tries": TRIES,
        "power": power,
        "rules": {name: rules(name) for name in NOISES},
    }


# ---- the pictures


class Plot:
    """A picture with a frame; x and y go from the first to the second number of a range."""

    def __init__(self, title: str, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._title, self._x, self._y = title, x, y
        self._parts: list[str] = []
        self.text(LEFT, 20, title, size=14)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point lies, in pixels from the top left."""
        across = (x - self._x[0]) / (self._x[1] - self._x[0])
        up = (y - self._y[0]) / (self._y[1] - self._y[0])
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )

    def text(
        self,
        x: float,
        y: float,
        said: str,
        *,
        anchor: str = "start",
        size: int = 12,
    ) -> None:
        """Write at pixels."""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
            f' fill="{INK}">{escape(said)}</text>'
        )

    def line(
        self, points: Sequence[tuple[float, float]], ink: str, *, dash: str = "", width: float = 2
    ) -> None:
        """Draw a line through points."""
        shown = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in points)
        self._parts.append(
            f'<polyline points="{shown}" fill="none" stroke="{ink}" stroke-width="{width:g}"'
            f' stroke-dasharray="{dash}"/>'
        )

    def dots(self, points: Iterable[tuple[float, float]], ink: str) -> None:
        """Mark points."""
        for x, y in points:
            left, top = self.at(x, y)
            self._parts.append(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="2.5" fill="{ink}"/>')

    def bar(self, low: float, high: float, y: float, ink: str) -> None:
        """Draw a bar from x low to high, from the ground to y."""
        (left, top), (right, ground) = self.at(low, y), self.at(high, self._y[0])
        self._parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}"'
            f' height="{max(ground - top, 1.5):.1f}" fill="{ink}"/>'
        )

    def axes(
        self, xs: Sequence[tuple[float, str]], ys: Sequence[tuple[float, str]], x: str
    ) -> None:
        """Draw the frame's two sides with their marks; x: what goes to the right."""
        for at, said in ys:
            self.line([(self._x[0], at), (self._x[1], at)], PALE, width=1)
            left, top = self.at(self._x[0], at)
            self.text(left - 6, top + 4, said, anchor="end")
        for at, said in xs:
            left, ground = self.at(at, self._y[0])
            self.text(left, ground + 16, said, anchor="middle")
        middle = (LEFT + WIDTH - RIGHT) / 2
        self.text(middle, HEIGHT - 10, x, anchor="middle")

    def legend(self, said: Sequence[tuple[str, str]]) -> None:
        """Say on the right what each colour is."""
        for row, (name, ink) in enumerate(said):
            left, top = WIDTH - RIGHT + 14, TOP + 14 + 18 * row
            self._parts.append(
                f'<rect x="{left:.1f}" y="{top - 9:.1f}" width="10" height="10" fill="{ink}"/>'
            )
            self.text(left + 15, top, name)

    def svg(self) -> str:
        """Return the picture; it has a ground of its own, for readers of dark pages."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}"'
            f' role="img" font-family="sans-serif"><title>{escape(self._title)}</title>'
            f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" fill="#ffffff"/>\n'
            + "\n".join(self._parts)
            + "\n</svg>\n"
        )


def percent(fraction: float) -> str:
    """Return a fraction as a mark of an axis."""
    return f"{100 * fraction:g} %"


def evidence(numbers: dict[str, Any]) -> str:
    """Return three attempts, block after block: the evidence that each has, and what it needs."""
    shown = numbers["attempts"]
    longest = max(len(one["steps"]) for one in shown)
    plot = Plot("Evidence in three attempts, min_effect 3 %, quiet noise", (0, longest), (-4, 9))
    blocks = [(float(n), str(n)) for n in range(0, longest + 1, 2)]
    levels = [(math.log(e), f"{e:g}") for e in (0.02, 1, 50, 800)]
    plot.axes(blocks, levels, "blocks; evidence E grows upwards, and confirm starts anew at 1")
    said = []
    for one, ink in zip(shown, COLOURS, strict=True):
        gain = f"+{percent(one['gain'])}" if one["gain"] else "nothing"
        began = 0
        for stage in ("screen", "confirm"):
            own = [s["ln_e"] for s in one["steps"] if s["stage"] == stage]
            path = [(float(began + n), ln_e) for n, ln_e in enumerate([0.0, *own])]
            if own:
                plot.line(path, ink)
                plot.dots(path[1:], ink)
                needs = one["needs"][stage]
                plot.line([(began, needs), (began + len(own), needs)], ink, dash="4 3", width=1)
            began += len(own)
        said.append((f"{gain}: {one['result'].replace('_', ' ')}", ink))
    plot.legend([*said, ("dashed: needed", PALE)])
    return plot.svg()


def power(numbers: dict[str, Any], min_effect: float) -> str:
    """Return how surely a gain is promoted, by its size and the noise."""
    title = f"Promoted by true gain, min_effect {percent(min_effect)}"
    plot = Plot(title, (0, GAINS[-1]), (0, 1))
    marks = [(step / 100, percent(step / 100)) for step in range(7)]
    shares = [(step / 4, percent(step / 4)) for step in range(5)]
    plot.axes(marks, shares, f"true gain; {numbers['tries']} attempts a point")
    plot.line([(min_effect, 0), (min_effect, 1)], INK, dash="4 3", width=1)
    said = []
    for name, ink in zip(NOISES, COLOURS, strict=True):
        points = [(gain, found) for gain, found in numbers["power"][str(min_effect)][name]]
        plot.line(points, ink)
        plot.dots(points, ink)
        said.append((f"{name} noise", ink))
    plot.legend([*said, ("dashed: min_effect", INK)])
    return plot.svg()


def champions(numbers: dict[str, Any]) -> str:
    """Return how many campaigns in which nothing can improve crown something, by rule."""
    names = list(numbers["rules"][NOISES[0]])
    title = "Campaigns of 200 worthless edits that crown one"
    plot = Plot(title, (0, len(names)), (0, 1))
    shares = [(step / 4, percent(step / 4)) for step in range(5)]
    plot.axes([], shares, "")
    for n, rule in enumerate(names):
        left, ground = plot.at(n + 0.5, 0.0)
        plot.text(left, ground + (16 if n % 2 else 30), rule, anchor="middle", size=10)
    for n, rule in enumerate(names):
        for side, (name, ink) in enumerate(zip(NOISES, COLOURS, strict=True)):
            one = numbers["rules"][name][rule]
            low = n + 0.14 + 0.24 * side
            plot.bar(low, low + 0.22, one["false_champion_campaigns"] / one["campaigns"], ink)
    plot.legend([(f"{name} noise", ink) for name, ink in zip(NOISES, COLOURS, strict=True)])
    return plot.svg()


def drawn(numbers: dict[str, Any]) -> dict[str, str]:
    """Return each picture by its file's name."""
    return {
        "evidence.svg": evidence(numbers),
        "power-3.svg": power(numbers, 0.03),
        "power-0.5.svg": power(numbers, 0.005),
        "false-champions.svg": champions(numbers),
    }


def main() -> None:
    """Draw, and simulate before when that is asked for."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    words.add_argument("--simulate", action="store_true", help="make the numbers anew first")
    words.add_argument("--into", type=Path, default=FIGURES, help="a folder for the pictures")
    asked = words.parse_args()
    file = FIGURES / NUMBERS
    if asked.simulate:
        FIGURES.mkdir(exist_ok=True)
        file.write_text(json.dumps(simulated(), indent=1) + "\n", encoding="utf-8")
    numbers = json.loads(file.read_text(encoding="utf-8"))
    asked.into.mkdir(exist_ok=True)
    for name, text in drawn(numbers).items():
        (asked.into / name).write_text(text, encoding="utf-8")
        print(asked.into / name)


if __name__ == "__main__":
    main()
