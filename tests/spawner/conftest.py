"""A spawner of this process's own, at level none: nothing here can reach a kill(-1)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from thermite.rig.stages import Slot, Stages
from thermite.rig.start import spawner
from thermite.schema.stage import Entry, Limits, StageResult


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Stages]:
    with spawner(tmp_path / "rig", isolation="none") as stages:
        yield stages


class Runner:
    """Runs shell and Python text in one slot."""

    def __init__(self, rig: Stages, slot: Slot) -> None:
        self.rig, self.slot = rig, slot

    def argv(self, *argv: str, **limits: float | None) -> StageResult:
        return self.slot.run(
            argv,
            env={"PATH": self.rig.path_variable},
            limits=Limits(**{"timeout_s": 20, **limits}),  # type: ignore[arg-type]
        )

    def sh(self, text: str, **limits: float | None) -> StageResult:
        return self.argv("sh", "-c", text, **limits)

    def python(self, text: str, **limits: float | None) -> StageResult:
        self.slot.place([Entry(path=b"program.py", kind="file", data=text.encode())])
        return self.argv("python3", "-I", "-S", "program.py", **limits)


@pytest.fixture
def run(rig: Stages) -> Iterator[Runner]:
    with rig.slot("run-0") as slot:
        yield Runner(rig, slot)
