"""The rule of promotion beside other harnesses' rules, on simulated attempts of known gain.

Prints how often a campaign of edits that are worth nothing crowns one, what an attempt costs, how
surely a gain is found, and how much of a claim is luck, each with what is asked for. Blocks
and decisions are the judge's own code; the peers are models of their decision rules in one
cell, and see the same edits on the same noise. The nulls are exact, so this says nothing of
edits that move code.

It takes the sizes that the figures are asked in, on as many processes as there are processors:
some 20 minutes of two, 3 of sixteen. `--short` takes a minute. `--noise` names a pool that we
ship (quiet, heavy, loaded), the model heavier, or a file of recorded run times, more than once
for several. `--seed` draws everything; how many processes draw changes nothing.
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from thermite.cli.judge_simulate import noise_named
from thermite.errors import ThermiteError
from thermite.judge.simulate.attempt import ScreenOnly, SignFlip, parameters
from thermite.judge.simulate.campaign import Climbed, Climber, campaign
from thermite.judge.simulate.edit import NULL, Edit, gain_of, mixed
from thermite.judge.simulate.figures import (
    Share,
    claim_bias_pp,
    mean_blocks,
    mean_gains,
    promoted,
    with_false_promotion,
)
from thermite.judge.simulate.noise import MODELS, Noise
from thermite.judge.simulate.peers import Greedy, peers
from thermite.judge.simulate.recorded import resampled
from thermite.judge.simulate.trial import OURS

SENSITIVE: Final = 0.005
"""The lowest min_effect that the figures are asked at; nulls are the hardest there."""
CPU: Final = 0.03
"""The default min_effect of target cpu."""
HELD_OUT: Final = (0.03, -0.01)
"""A gain in the visible cells that is a loss in the held-out one."""
NULL_BLOCKS: Final = 7
BIAS_PP: Final = 0.1
HELD_OUT_SHARE: Final = 0.003
REACHED: Final = 0.8
"""What is asked of every rule that calls itself trustworthy; of power, see `GAINS`."""
GAINS: Final[tuple[tuple[float, float, float | None, int | None], ...]] = (
    (CPU, 0.05, 0.99, 20),
    (CPU, 0.04, 0.95, 20),
    (CPU, 0.06, 0.99, 20),
    (CPU, 0.03, None, None),
    (CPU, 0.02, None, None),
    (SENSITIVE, 0.02, 0.95, 25),
    (SENSITIVE, 0.01, None, None),
)
"""min_effect, true gain, and on quiet noise the power and the most mean blocks asked for."""
PEER_CAMPAIGNS: Final = 20
"""A peer's rate of false campaigns is seen in few; repeat-until-sem costs 100 runs an attempt."""


@dataclass(frozen=True)
class Size:
    """How many of each: campaigns of nulls, attempts of one gain, campaigns of mixed edits."""

    campaigns: int
    gains: int
    mixed: int
    held_out: int
    attempts: int = 200


SHORT: Final = Size(campaigns=4, gains=80, mixed=3, held_out=80)
FULL: Final = Size(campaigns=300, gains=3000, mixed=150, held_out=3000)


_MADE: Final[dict[str, Callable[[int], Climbed]]] = {}
"""What this process's children make."""


def side_by_side(one: Callable[[int], Climbed], count: int) -> list[Climbed]:
    """Return so many campaigns by their number, made by a process on each processor."""
    _MADE["one"] = one
    processes = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("fork").Pool(processes) as pool:
        return pool.map(_make, range(count), chunksize=1 + count // (8 * processes))


def _make(number: int) -> Climbed:
    return _MADE["one"](number)


def ours(min_effect: float, held_out: int = 0) -> Callable[[bytes], Climber]:
    """Return the rule at a min_effect."""
    p = parameters(min_effect, held_out=held_out)
    return lambda seed: SignFlip(p, seed)


def fresh(make: Callable[[], Climber]) -> Callable[[bytes], Climber]:
    """Return a peer's rule as one that draws nothing from a campaign's seed."""
    return lambda _: make()


def line(what: str, asked: str, reached: str, *, missed: bool = False) -> None:
    """Print a row of the table."""
    print(f"  {what:<62} {asked:<23} {reached}{'   MISSED' if missed else ''}", flush=True)


def percent(share: Share) -> str:
    """Return a share with its count."""
    return f"{100 * share.share:.2f} % ({share.count} of {share.of})"


@dataclass(frozen=True)
class Bench:
    """One noise and what is tried on it; asked: whether the figures are asked for on it."""

    name: str
    noise: Noise
    size: Size
    seed: str

    def climb(
        self, make: Callable[[bytes], Climber], edits: Sequence[Edit], count: int, what: str
    ) -> list[Climbed]:
        """Return so many campaigns of the same edits."""
        seed = f"{self.seed}/{self.name}/{what}"
        return side_by_side(
            lambda number: campaign(make, lambda _: edits, self.noise, f"{seed}/{number}"), count
        )

    @property
    def is_asked(self) -> bool:
        """Whether costs and biases are asked for on this noise."""
        return self.name in {"quiet", "heavy"}

    def nulls(self) -> list[Climbed]:
        """Print the rows of campaigns in which nothing can improve, the sensitive ones last."""
        edits = [NULL] * self.size.attempts
        for min_effect in (CPU, SENSITIVE):
            climbed = self.climb(ours(min_effect), edits, self.size.campaigns, f"null {min_effect}")
            at = f"min_effect {100 * min_effect:g} %"
            false, alone = with_false_promotion(climbed), promoted(climbed)
            line(
                f"campaigns of {self.size.attempts} nulls with a promotion, {at}",
                "0",
                f"{false.count} of {false.of} (95 %: <= {100 * false.at_most:.2f} %),"
                f" {alone.count} of {alone.of} attempts",
                missed=false.count > 0,
            )
            spent = mean_blocks(climbed)
            line(
                f"  mean blocks of a null, {at}",
                f"<= {NULL_BLOCKS}" if self.is_asked else "printed",
                f"{spent:.2f}",
                missed=self.is_asked and spent > NULL_BLOCKS,
            )
        return climbed

    def gains(self) -> None:
        """Print how surely a gain is promoted, at what cost and with what bias."""
        for min_effect, gain, power, most in GAINS:
            what = f"gain {gain} at {min_effect}"
            climbed = self.climb(ours(min_effect), [gain_of(gain)], self.size.gains, what)
            found, spent = promoted(climbed), mean_blocks(climbed)
            asked, missed = "printed", False
            if self.name == "quiet" and power is not None and most is not None:
                asked = f">= {100 * power:g} %, <= {most} blocks"
                missed = found.share < power or spent > most
            what = f"power at +{100 * gain:g} %, min_effect {100 * min_effect:g} %"
            line(what, asked, f"{percent(found)}, {spent:.1f} blocks", missed=missed)
            if gain >= 2 * min_effect:
                self._bias(claim_bias_pp(climbed))

    def _bias(self, bias: float | None) -> None:
        line(
            "  claimed - true gain of a promotion",
            f"<= {BIAS_PP} pp" if self.is_asked else "printed",
            "no promotion" if bias is None else f"{bias:+.3f} pp",
            missed=self.is_asked and bias is not None and bias > BIAS_PP,
        )

    def held_out(self) -> None:
        """Print how often a gain that is a loss on held-out cells is promoted."""
        visible, loss = (gain_of(part).gain for part in HELD_OUT)
        edits = [Edit(gain=visible, held_out=loss)]
        climbed = self.climb(ours(SENSITIVE, held_out=1), edits, self.size.held_out, "held out")
        share = promoted(climbed)
        line(
            "held-out losses of 1 % promoted (visible +3 %)",
            "<= 3 in 1,000",
            f"{share.count} of {share.of} (95 %: <= {1000 * share.at_most:.2f} in 1,000)",
            missed=share.share > HELD_OUT_SHARE,
        )

    def mixed(self, nulls: list[Climbed]) -> None:
        """Print what campaigns with some real edits reach, by each rule; nulls: the rule's."""
        greedy = self._mixed(lambda _: Greedy(), self.size.mixed)
        reached = mean_gains(greedy)[1]
        climbed = self._mixed(ours(SENSITIVE), self.size.mixed)
        share = mean_gains(climbed)[1] / reached
        line(
            "true gain reached, of a greedy climber's that sees it",
            ">= 80 %" if self.name == "quiet" else "printed",
            f"{100 * share:.1f} % of +{100 * reached:.1f} % in {self.size.mixed} campaigns",
            missed=self.name == "quiet" and share < REACHED,
        )
        print(
            f"\n  {'rule':<18} {'false campaigns':>16} {'false in mixed':>15} {'blocks':>7}"
            f" {'claimed':>12} {'true':>8} {'of greedy':>10}   (mixed: 5 % of +1..+5 %, 5 % worse)"
        )
        self._rule(OURS[-1], nulls, climbed, greedy)
        p = parameters(SENSITIVE)
        others: dict[str, Callable[[bytes], Climber]] = {
            "screen alone": lambda seed: ScreenOnly(p, seed)
        }
        others |= {name: fresh(make) for name, make in peers().items()}
        edits = [NULL] * self.size.attempts
        few = min(PEER_CAMPAIGNS, self.size.campaigns)
        for name, made in others.items():
            alone = self.climb(made, edits, few, f"null {SENSITIVE}")
            self._rule(name, alone, self._mixed(made, min(few, self.size.mixed)), greedy)

    @staticmethod
    def _rule(name: str, nulls: list[Climbed], some: list[Climbed], greedy: list[Climbed]) -> None:
        reached = mean_gains(greedy[: len(some)])[1]  # in the same campaigns
        false = with_false_promotion(nulls)
        claimed, true = mean_gains(some)
        falses = sum(one.false_promotions for one in some) / len(some)
        print(
            f"  {name:<18} {f'{false.count} of {false.of}':>16} {falses:15.2f}"
            f" {mean_blocks(some):7.1f} {f'{100 * claimed:+.4g}':>10} % {100 * true:+6.1f} %"
            f" {100 * true / reached:8.0f} %",
            flush=True,
        )

    def _mixed(self, make: Callable[[bytes], Climber], count: int) -> list[Climbed]:
        size = self.size

        def edits(draw: Random) -> Sequence[Edit]:
            return mixed(draw, size.attempts)

        seed = f"{self.seed}/{self.name}/mixed"
        return side_by_side(
            lambda number: campaign(make, edits, self.noise, f"{seed}/{number}"), count
        )


def asked_for(argv: list[str]) -> argparse.Namespace:
    """Return the options."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--seed", default="1", help="draws everything (1)")
    words.add_argument("--noise", action="append", help="a model's name or a file; repeatable")
    words.add_argument("--short", action="store_true", help="small sizes: a minute in all")
    words.add_argument("--campaigns", type=int, help="campaigns of nulls")
    words.add_argument("--gains", type=int, help="attempts of each true gain")
    words.add_argument("--mixed", type=int, help="campaigns in which some edits are better")
    words.add_argument("--held-out", type=int, help="attempts that lose on held-out cells")
    words.add_argument("--attempts", type=int, help="attempts of a campaign (200)")
    return words.parse_args(argv)


def size_of(options: argparse.Namespace) -> Size:
    """Return the sizes, each as asked for or by default."""
    start = SHORT if options.short else FULL
    names = ("campaigns", "gains", "mixed", "held_out", "attempts")
    given = {name: getattr(options, name) for name in names}
    whole = {name: getattr(start, name) if one is None else one for name, one in given.items()}
    if min(whole.values()) < 1 or whole["attempts"] < 20:  # noqa: PLR2004 - one edit in 20 is real
        sys.exit("every size must be 1 or more, and --attempts 20 or more")
    return Size(**whole)


def noise_of(name: str) -> tuple[str, Noise]:
    """Return what to call a noise, and it."""
    try:
        source, what = noise_named(name)
    except (OSError, ThermiteError) as problem:
        sys.exit(str(problem))
    return what, MODELS[source] if isinstance(source, str) else resampled(source)


def main(argv: list[str]) -> None:
    """Print the table of each noise."""
    options = asked_for(argv)
    size = size_of(options)
    chosen = [(name, *noise_of(name)) for name in options.noise or ("quiet", "heavy", "loaded")]
    for name, what, noise in chosen:
        print(f"\n{name} ({what}), seed {options.seed}, {size}")
        bench = Bench(name, noise, size, options.seed)
        nulls = bench.nulls()
        bench.gains()
        bench.held_out()
        bench.mixed(nulls)


if __name__ == "__main__":
    main(sys.argv[1:])
