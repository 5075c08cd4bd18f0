"""What a campaign's report says, from values written by hand."""

import pytest

from thermite.report.campaign import percent, short, span


@pytest.mark.parametrize(
    ("fraction", "shown"),
    [
        pytest.param(0.4137, "+41.4 %", id="a gain"),
        pytest.param(-0.03, "-3.0 %", id="a loss"),
        pytest.param(None, "–", id="not measured is not zero"),
        pytest.param(0.0, "+0.0 %", id="zero is measured"),
    ],
)
def test_a_fraction_is_shown_with_its_sign(fraction: float | None, shown: str) -> None:
    assert percent(fraction) == shown


@pytest.mark.parametrize(
    ("interval", "shown"),
    [
        pytest.param((0.1, 0.2), "[+10.0 %, +20.0 %]", id="both ends"),
        pytest.param((None, 0.2), "[–, +20.0 %]", id="one end"),
        pytest.param((None, None), "", id="no end was found"),
        pytest.param(None, "", id="not measured"),
    ],
)
def test_an_interval_is_shown_as_far_as_it_is_known(
    interval: tuple[float | None, float | None] | None, shown: str
) -> None:
    assert span(interval) == shown


def test_a_long_reason_fits_a_line() -> None:
    assert short(["a\nb", "c"]) == "a b; c"
    assert len(short(["x" * 500])) == 160
