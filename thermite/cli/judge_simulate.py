"""`thermite judge simulate`: the rule of promotion beside other rules, on noise of known gain.

The campaigns are made by as many processes as this one may use processors, which changes
nothing of what comes out: each depends on the seed, its series and its number only.
"""

import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from thermite.cli.arguments import FRACTION, PLACE, Whole
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.cli.pulse import pulse
from thermite.errors import NotFoundError, UsageError
from thermite.judge.simulate.campaign import Climbed
from thermite.judge.simulate.figures import Share
from thermite.judge.simulate.noise import MODELS, Noise
from thermite.judge.simulate.recorded import (
    MOST_BYTES,
    Recording,
    UnreadableNoiseError,
    read_recording,
    resampled,
)
from thermite.judge.simulate.trial import (
    OURS,
    SERIES,
    Question,
    Series,
    Trial,
    one_campaign,
    rules,
    trial,
)
from thermite.shipped import shipped_file

MOST_ATTEMPTS: Final = 1_000_000
"""Attempts of a series; at 25 blocks each that is an hour of one core (our bound)."""
MOST_CELLS: Final = 64
"""Cells of a block; a contract has as many at most in practice (our bound)."""
KNOWN: Final = ("quiet", "heavy", "loaded")
"""Noises that have a name."""

_HERE: Final[dict[str, Noise]] = {}
"""The noise of this process, when it is one of the pool."""


@click.command(
    "simulate",
    epilog="Example: thermite judge simulate --noise heavy --campaigns 5 --effect 0.02",
)
@click.option(
    "--rule",
    "chosen",
    multiple=True,
    metavar="NAME",
    type=click.Choice(rules()),
    help=f"Rules to try, more than once for several; {OURS[-1]} and all of the peers'.",
)
@click.option(
    "--noise",
    type=PLACE,
    default="quiet",
    show_default=True,
    metavar="quiet|heavy|loaded|FILE",
    help="A pool that we ship, or a file that rig selftest --record wrote.",
)
@click.option(
    "--min-effect", type=FRACTION, default=0.005, show_default=True, help="Least gain that counts."
)
@click.option(
    "--effect", type=FRACTION, default=0.02, show_default=True, help="The true gain of an edit."
)
@click.option(
    "--cells", type=Whole(1, MOST_CELLS), default=1, show_default=True, help="Of a block."
)
@click.option(
    "--attempts", type=Whole(1, 10_000), default=200, show_default=True, help="A campaign."
)
@click.option(
    "--campaigns", type=Whole(1, 100_000), default=20, show_default=True, help="A series."
)
@click.option(
    "--seed",
    type=Whole(0),
    default=1,
    show_default=True,
    help="Draws everything.",
)
@with_output
def command(  # noqa: PLR0913 - one parameter for each option
    output: Output,
    *,
    chosen: tuple[str, ...],
    noise: str,
    min_effect: float,
    effect: float,
    cells: int,
    attempts: int,
    campaigns: int,
    seed: int,
) -> None:
    """Try the rule of promotion on edits whose true gain is known, beside other harnesses' rules.

    Three series of campaigns for each rule: of edits that are worth nothing, of edits that
    are worth --effect, and of those in one attempt of ten. The peers are small models of
    their rules and measure one cell, whatever --cells says.
    """
    if attempts * campaigns > MOST_ATTEMPTS:
        most = MOST_ATTEMPTS // attempts
        raise UsageError(
            f"{campaigns} campaigns of {attempts} attempts are more than {MOST_ATTEMPTS} attempts:"
            f" give --campaigns {most} or less"
        )
    asked = Question(
        min_effect=min_effect,
        effect=effect,
        cells=cells,
        attempts=attempts,
        campaigns=campaigns,
        seed=seed,
    )
    source, what = noise_named(noise)
    output.result(f"{noise} ({what}), seed {seed}: {campaigns} campaigns of {attempts} attempts")
    output.result(HEAD)
    found: dict[str, Trial] = {}
    with _made_by_many(source) as pool:
        for rule in wanted_rules(chosen):
            with pulse(output, f"trying {rule}", at_once=False):
                found[rule] = trial(asked, {s: _series(pool, rule, s, asked) for s in SERIES})
            output.result(row(rule, found[rule]))
    for line in legend(asked):
        output.result(line)
    output.document(dict(found.items()))


def wanted_rules(chosen: Sequence[str]) -> list[str]:
    """Return the rules to try: ours brings the peers' with it, theirs come alone."""
    named = set(chosen) or {OURS[-1]}
    if named & set(OURS):
        named |= set(rules()) - set(OURS)
    return [name for name in rules() if name in named]


def noise_named(name: str) -> tuple[str | Recording, str]:
    """Return a model's name or a recording, and what it is in words.

    Raises:
        NotFoundError: there is no such file.
        UsageError: it is no recording.
    """
    shipped = _recorded(name)
    if name in MODELS and shipped is None:
        return name, "seeded model"
    path = shipped or Path(name)
    try:
        with path.open("rb") as file:
            found = read_recording(file.read(MOST_BYTES + 1))
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no noise file {name!a}: we ship {', '.join(KNOWN)}"
        ) from None
    except UnreadableNoiseError as problem:
        raise UsageError(f"--noise {name!a}: {problem}") from None
    return found, f"{len(found.t_ns)} recorded runs: {found.what}"


def _recorded(name: str) -> Path | None:
    """Return the recording that we ship of that name: a pool of real runs goes before a model."""
    if name not in KNOWN:
        return None
    try:
        return shipped_file(f"noise/{name}.json")
    except UsageError:
        return None


HEAD: Final = (
    f"{'rule':<18} {'false campaigns':>24} {'power':>8} {'blocks':>7} {'bias':>10}"
    f" {'claimed':>10} {'true':>8}"
)


def legend(asked: Question) -> list[str]:
    """Return what the columns mean, for a person who has just seen them."""
    gain = f"{100 * asked.effect:g} %"
    return [
        "",
        "false campaigns  of edits that are worth nothing: those that crowned one all the same; in",
        "                 brackets, the most that this still fits to, at 95 %",
        f"power            of edits that are worth {gain}: how many were promoted",
        "blocks           what an edit that is worth nothing costs on average (a block: both run)",
        "bias             what a promotion claims above its true gain, in percentage points",
        f"claimed, true    what a campaign with one edit of {gain} in ten says it gained, and did",
    ]


def row(rule: str, one: Trial) -> str:
    """Return a rule's line for a person."""
    false = Share(count=one.false_champion_campaigns, of=one.campaigns)
    bias = "-" if one.claim_bias_pp is None else f"{one.claim_bias_pp:+.2f} pp"
    claimed = "beyond" if one.claimed_gain is None else f"{100 * one.claimed_gain:+.4g} %"
    crowned = f"{false.count} of {false.of} (<= {100 * false.at_most:.1f} %)"
    return (
        f"{rule:<18} {crowned:>24} {100 * one.power:6.1f} % {one.mean_blocks:7.2f} {bias:>10}"
        f" {claimed:>10} {100 * (one.true_gain or 0.0):+6.1f} %"
    )


@contextmanager
def _made_by_many(source: str | Recording) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that have the noise; what waits is dropped when one is interrupted.

    Raises:
        CommandEnds: one of them was killed.
    """
    count = len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(count, initializer=_begin, initargs=(source,))
    try:
        yield pool
    except BrokenProcessPool:
        raise CommandEnds(
            Exit.FAILED, "a process of the simulation was killed: is there memory enough?"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(source: str | Recording) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says that it was interrupted
    _HERE["noise"] = MODELS[source] if isinstance(source, str) else resampled(source)


def _series(pool: ProcessPoolExecutor, rule: str, series: Series, asked: Question) -> list[Climbed]:
    waiting: list[Future[Climbed]] = [
        pool.submit(_one, rule, series, number, asked) for number in range(asked.campaigns)
    ]
    return [one.result() for one in waiting]


def _one(rule: str, series: Series, number: int, asked: Question) -> Climbed:
    return one_campaign(rule, series, number, asked, _HERE["noise"])
