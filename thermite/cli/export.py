"""`thermite export`: one promotion with all its evidence, in one file to carry away."""

import shlex
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from thermite import __version__
from thermite.audit.promotion import export
from thermite.cli.arguments import PATH, TEXT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.cli.places import existing_ledger, ledger_options
from thermite.kit.patch import patch_between
from thermite.report import promotion as report
from thermite.schema.promotion import MOST_FILE_BYTES, Made, PromotionFile


@click.command("export", epilog="Example: thermite export 3f9c2ab --state rig/ -o gain.json")
@click.argument("promotion", type=TEXT)
@ledger_options
@click.option("--patch", is_flag=True, help="Carry the git patch, too, for readers.")
@click.option("-o", "target", type=PATH, required=True, help="The file to write.")
@with_output
def command(
    output: Output,
    promotion: str,
    *,
    state: Path | None,
    ledger: Path | None,
    patch: bool,
    target: Path,
) -> None:
    """Write one promotion with its evidence into one file that thermite verify checks.

    PROMOTION is the number or the id of its event, or 7 or more digits of the candidate's
    commit. The file names held-out cells: it is for reviewers, not for agents.
    """
    path = existing_ledger(state, ledger)
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    made = Made(by=f"thermite {__version__}", at=now)
    whole = export(path, promotion, made=made, blobs=path.with_name("blobs"))
    if patch:
        whole = msgspec.structs.replace(whole, patch=_patch(path.with_name("repos"), whole))
    raw = msgspec.json.encode(whole)
    if len(raw) > MOST_FILE_BYTES:
        raise CommandEnds(Exit.FAILED, f"it takes {len(raw)} bytes: the most is {MOST_FILE_BYTES}")
    try:
        with target.open("xb") as file:
            file.write(raw)
    except FileExistsError:
        raise CommandEnds(Exit.WRONG_STATE, f"{target} is there already: name a new file") from None
    output.document({"file": str(target), "bytes": len(raw), "events": len(whole.events)})
    for line in report.lines(whole.summary):
        output.result(line)
    where = shlex.quote(str(target))
    output.result(f"{len(whole.events)} events, {len(raw) // 1024} KiB: thermite verify {where}")


def _patch(repos: Path, whole: PromotionFile) -> str:
    summary = whole.summary
    repo = repos / f"project-{summary.project.repo}.git"
    if not repo.is_dir():
        raise CommandEnds(Exit.NOT_FOUND, f"there is no repository {repo}: leave out --patch")
    return patch_between(repo, summary.champion.commit, summary.candidate.commit)
