"""What a real build, run and check say at length is cut by characters (known fault L12)."""

import pytest

from tests.judge.real.workshop import FAST, Workshop, alone, doing, write
from tests.requirement import shows
from thermite.schema.event import Build, Run

WIDE = "\N{GOTHIC LETTER HWAIR}"
"""One character, four bytes."""
NUL = "\\x00"
"""As it is shown: four characters."""
SAYS = 'import json\nprint(json.dumps({{"pass": False, "reasons": [chr(0x10348) * {}]}}))\n'


@shows("L12")
@pytest.mark.parametrize(
    ("letters", "kept"),
    [
        pytest.param(2000, WIDE * 2000, id="exactly the budget"),
        pytest.param(4000, f"{WIDE * 500}…{WIDE * 1500}", id="4,000"),
    ],
)
def test_a_checks_reason_keeps_its_first_quarter_and_its_last_three_quarters(
    bench: Workshop, letters: int, kept: str
) -> None:
    write(bench.kit, {"check.py": SAYS.format(letters)})
    assert alone(bench).reasons == [kept]
    assert bench.of(Run)[-1].reason == kept


@shows("L12")
def test_a_build_that_prints_64_kib_of_nuls_is_told_by_their_end(bench: Workshop) -> None:
    write(bench.kit, {"bench/build.sh": "head -c 65536 /dev/zero; exit 2\n"})
    kept = f"build: build failed (exit 2)\n{NUL * 375}"
    assert alone(bench, f"/* no build of it is kept yet */{FAST}").reasons == [kept]
    assert bench.of(Build)[-1].reason == kept


@shows("L12")
def test_a_run_that_prints_64_kib_of_nuls_is_told_by_both_ends(bench: Workshop) -> None:
    loud = doing("static char nuls[1 << 16]; write(2, nuls, sizeof nuls); exit(3);")
    kept = alone(bench, loud).reasons[0]
    assert kept == f"exit 3: {NUL * 123}…{NUL * 375}"
    assert bench.of(Run)[-1].reason == kept
