"""B3: a rig's folder that was moved to a machine with another processor."""

from pathlib import Path

import pytest

from thermite.harness.rig import open_bench
from thermite.rig.processor import processor
from thermite.rig.start import spawner
from thermite.schema.rig_settings import RigSettings


def test_B3_builds_that_came_along_are_thrown_away_and_that_is_said(  # noqa: N802
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    build = store / ("a" * 64)
    with spawner(tmp_path, isolation="none") as stages:
        for made_on, kept in ((None, True), ("A 7 (instructions 01234567)", False)):
            build.mkdir(parents=True, exist_ok=True)
            if made_on is not None:
                (store / "processor").write_text(made_on)
            open_bench(tmp_path, stages, RigSettings()).book.close()
            assert build.exists() == kept
            assert (store / "processor").read_text() == processor()
    assert capsys.readouterr().err == (
        "harness: the builds kept here are of another processor, A 7 (instructions 01234567):"
        f" they are made again on {processor()}\n"
    )
