"""What the benchmark of real runs says of its controls: kept, missed, or not measured."""

import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "real.py"


@pytest.fixture(scope="module")
def real() -> ModuleType:
    spec = importlib.util.spec_from_file_location("real_benchmark", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class ScriptedBench:
    """Grades a rig and gives verdicts as it was told to, without a run."""

    def __init__(self, grade: str, verdicts: Sequence[str]) -> None:
        self.grade, self._verdicts = grade, verdicts
        self.champion = ""

    def grade_by(self, champion: str, cells: Sequence[str], blocks: int) -> float:
        assert (len(cells), blocks) == (1, 40)
        assert champion
        return 0.004

    def measure(
        self, title: str, champion: str, candidates: Mapping[str, str], **_: object
    ) -> Counter[str]:
        assert "controls" in title
        self.champion = champion
        return Counter(self._verdicts[: len(candidates)])


@pytest.mark.parametrize(
    ("grade", "verdicts", "said"),
    [
        pytest.param(
            "quiet",
            ["promoted"] * 17 + ["not_better"] * 3,
            "aim: 17 of 20 controls of +5 % promoted, graded quiet (robust sd 0.40 % of 40 blocks):"
            " 17 of 20, at least 66 % at 95 %: kept",
            id="17 of 20",
        ),
        pytest.param(
            "usable",
            ["promoted"] * 16 + ["not_confirmed"] * 4,
            "aim: 17 of 20 controls of +10 % promoted, graded usable (robust sd 0.40 % of 40"
            " blocks): 16 of 20, at least 60 % at 95 %: MISSED",
            id="one too few",
        ),
        pytest.param(
            "usable",
            ["promoted"] * 12,
            "aim: 17 of 20 controls of +10 % promoted, graded usable (robust sd 0.40 % of 40"
            " blocks): 12 of 12, at least 78 % at 95 %: not measured: 500 s were enough for 12 of"
            " 20",
            id="no time",
        ),
        pytest.param(
            "noisy",
            [],
            "controls: not measured: graded noisy (robust sd 0.40 % of 40 blocks), not quiet or"
            " usable",
            id="noisy",
        ),
    ],
)
def test_controls_are_kept_missed_or_not_measured(
    real: ModuleType,
    capsys: pytest.CaptureFixture[str],
    grade: str,
    verdicts: list[str],
    said: str,
) -> None:
    real.measure_controls(ScriptedBench(grade, verdicts), 20, 500.0)
    assert capsys.readouterr().out == f"{said}\n"


def test_a_control_takes_away_the_work_that_it_is_worth(real: ModuleType) -> None:
    bench = ScriptedBench("quiet", ["promoted"] * 20)
    real.measure_controls(bench, 20, 500.0)
    assert "rows((int)(n * 0.0500 + 0.5), n, a, b, c)" in bench.champion
    assert "rows((int)(n * 0.0000 + 0.5), n, a, b, c)" in real.plain()
