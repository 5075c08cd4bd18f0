"""What a stage does at every level alike: it runs a tool from a stage copy, and leaves a file."""

import os
from pathlib import Path

from tests.spawner.conftest import WIDE
from thermite.rig.stages import Stages
from thermite.schema.stage import Entry, Limits


def work_of(rig: Stages, place: Path, owner: int | None = None) -> tuple[str, str]:
    """Return where a stage said it worked, and where it was to.

    owner: the stages' user, where this test is root and that is not.
    """
    tool, into = place / "tool", place / "kept"
    tool.write_text("#!/bin/sh\npwd > out/where\n")
    tool.chmod(0o755)
    with rig.slot("run-0") as slot, rig.copy_for("run-0") as copy:
        copy.add(tool, "tool")
        if owner is not None:
            for path in (copy.path, copy.path / "tool"):
                os.chown(path, owner, owner)
        slot.place([Entry(path=b"out", kind="folder")])
        result = slot.run(
            [str(copy.path / "tool")],
            env={"PATH": rig.path_variable},
            limits=Limits(timeout_s=20),
            readable=(copy,),
            timed=True,
        )
        assert result.exit_code == 0, result.stderr
        into.mkdir()
        into.chmod(0o777)
        assert slot.collect(["out/where"], into, WIDE).problems == []
        return (into / "out/where").read_text().strip(), str(slot.folder)
