"""`thermite verify --repro`: the two commits of a promotion judged on this machine.

It says what this machine measures, which decides nothing about the promotion: another
machine may rightly show another gain. Source: ledger and signing, 3.14.
"""

import tempfile
from pathlib import Path

from thermite.errors import InfrastructureError, KitError, UsageError
from thermite.harness.judge_here import Named, Question, as_it_stands, judge_here, told
from thermite.harness.local_job import local_judge
from thermite.kit.manifest import load_kit
from thermite.schema.promotion import Summary
from thermite.schema.repro import Repro


def judge_again(summary: Summary, project: Path, kit_folder: Path) -> Repro:
    """Return what this machine says of a promotion's candidate against its champion.

    Args:
        summary: which commits, cells, metric; held-out cells are judged as cells are.
        project: a repository with both commits.
        kit_folder: the kit that judges, as it stands.
    """
    cells = [*summary.cells, *summary.held_out_cells]
    question = Question(cells, summary.metric, summary.direction, None)
    candidate, champion = (
        Named(project, arm.commit) for arm in (summary.candidate, summary.champion)
    )
    try:
        kit = load_kit(kit_folder)
        with (
            tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-repro-") as name,
            as_it_stands(kit_folder) as plain,
            local_judge(Path(name) / "rig", plain, kit.name) as judge,
        ):
            found = told(judge_here(judge, kit, candidate, champion, question), alone=False)
            probe, used = judge.bench.book.state.isolation, judge.kit
    except (KitError, InfrastructureError, UsageError) as error:
        return Repro(problem=str(error))
    return Repro(
        verdict=found["verdict"],
        gain=found["gain"],
        interval=None
        if found["interval"] is None
        else (found["interval"][0], found["interval"][1]),
        isolation=None if probe is None else probe.level,
        kit=used,
    )
