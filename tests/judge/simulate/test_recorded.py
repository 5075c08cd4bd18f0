"""A recording of noise is read whole or refused with the reason."""

import itertools
import json
import math
from random import Random

import pytest

from thermite.judge.simulate.recorded import UnreadableNoiseError, read_recording, resampled

GOOD = {"schema_version": 1, "what": "a test", "t_ns": [1000 + n for n in range(40)]}


def test_four_neighbours_stay_together() -> None:
    noise = resampled(read_recording(json.dumps(GOOD).encode()))
    logs = list(itertools.islice(noise(Random(3)), 400))
    # ln(t + 1) - ln(t) is about 1/1000: three steps in four are one place ahead.
    ahead = [b - a for a, b in itertools.pairwise(logs)]
    assert all(0.0009 < step < 0.0011 for n, step in enumerate(ahead) if n % 4 != 3)
    assert not all(0.0009 < step < 0.0011 for step in ahead)


def test_the_mean_of_a_recording_is_no_gain() -> None:
    noise = resampled(read_recording(json.dumps(GOOD).encode()))
    logs = list(itertools.islice(noise(Random(3)), 4000))
    assert math.fsum(logs) / len(logs) == pytest.approx(0.0, abs=0.002)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(json.dumps(GOOD | {"t_ns": [1] * 39}).encode(), ">= 40", id="too few"),
        pytest.param(json.dumps(GOOD | {"t_ns": [0] * 40}).encode(), ">= 1", id="no time"),
        pytest.param(b"[" * 9 + b"]" * 9, "deep", id="too deep"),
        pytest.param(json.dumps(GOOD | {"t_ns": [1.5] * 40}).encode(), "`int`", id="no integer"),
        pytest.param(json.dumps(GOOD | {"more": 1}).encode(), "more", id="an unknown field"),
        pytest.param(json.dumps(GOOD | {"schema_version": 2}).encode(), "2", id="another version"),
    ],
)
def test_what_is_no_recording_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(UnreadableNoiseError, match=r"^the noise file ") as refusal:
        read_recording(raw)
    assert said in str(refusal.value)
