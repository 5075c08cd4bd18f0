"""Recorded noise: run times of one program on one machine, resampled four in a row.

Four neighbours keep what binds a run to the next one, drift and bursts; which four follow is drawn.
Source: the design page on judging, 2.4.
"""

import itertools
import math
from collections.abc import Iterator
from random import Random
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from thermite.judge.simulate.noise import Noise
from thermite.schema.strict import Strict
from thermite.schema.strict_json import NotStrictJson, read

IN_A_ROW: Final = 4
"""Neighbours that stay together (judging, 2.4)."""
FEWEST: Final = 40
"""Runs below which a recording says nothing of a machine (our figure)."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""A recording of a million runs is 10 MB (our bound)."""
_MOST_LEVELS: Final = 4
_WANTED: Final = (
    "give JSON with schema_version 1, what, and t_ns, a list of at least 40 run times in ns"
)

RunTime = Annotated[int, Meta(gt=0, le=86_400_000_000_000)]


class Recording(Strict):
    """Runs of one program in the order in which they ran; t_ns: the times, ns.

    what: program, machine and how it was set up, for the reader of a table.
    """

    schema_version: Literal[1]
    what: str
    t_ns: Annotated[list[RunTime], Meta(min_length=FEWEST)]


class UnreadableNoiseError(ValueError):
    """A file of noise can't be read; the text says why."""


def read_recording(raw: bytes) -> Recording:
    """Return the recording in a file of noise.

    Raises:
        UnreadableNoiseError: it isn't one; the fault of whoever wrote the file.
    """
    try:
        found = read(raw, most_bytes=MOST_BYTES, most_levels=_MOST_LEVELS)
        return msgspec.convert(found, Recording)
    except NotStrictJson as problem:
        raise UnreadableNoiseError(f"the noise file {problem}: {_WANTED}") from problem
    except msgspec.ValidationError as problem:
        raise UnreadableNoiseError(f"the noise file is wrong: {problem}; {_WANTED}") from problem


def resampled(recording: Recording) -> Noise:
    """Return a recording as noise, its geometric mean at 0."""
    logs = [math.log(t) for t in recording.t_ns]
    mean = math.fsum(logs) / len(logs)
    centred = [log - mean for log in logs]

    def occasion(draw: Random) -> Iterator[float]:
        for start in iter(lambda: draw.randrange(len(centred) - IN_A_ROW + 1), None):
            yield from itertools.islice(centred, start, start + IN_A_ROW)

    return occasion
