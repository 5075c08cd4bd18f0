"""`thermite verify`: check a promotion that somebody carried here, on any machine."""

from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from thermite.audit.promotion import Carried, verify
from thermite.cli.arguments import KIT, PATH, PLACE
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, visible, with_output
from thermite.cli.pulse import pulse
from thermite.command.public_key import PublicKey
from thermite.errors import NotFoundError, UsageError
from thermite.kit.git import GitError, git
from thermite.kit.patch import tree_after
from thermite.report import promotion as report
from thermite.schema.promotion import MOST_FILE_BYTES
from thermite.schema.repro import Repro

_MOST_KEY_BYTES = 4096
"""A public line takes some 100."""
_SQLITE = b"SQLite format 3\0"
"""How a ledger begins. Source: https://www.sqlite.org/fileformat.html, 1.3."""


@click.command("verify", epilog="Example: thermite verify gain.json --rig-key rig.pub")
@click.argument("file", type=PATH)
@click.option("--rig-key", type=PLACE, help="The rig's public line, or a file that holds it.")
@click.option(
    "--project",
    type=PATH,
    help="A repository that must have the trees that were judged, and bear out the patch.",
)
@click.option("--repro", is_flag=True, help="Judge both commits here, too; changes no result.")
@click.option("--kit", "kit_folder", type=KIT, help="With --repro: the kit that judges here.")
@with_output
def command(
    output: Output,
    file: Path,
    *,
    rig_key: str | None,
    project: Path | None,
    repro: bool,
    kit_folder: Path | None,
) -> None:
    """Check a promotion file: its signature, its proof, the coin, and the evidence.

    Ends with 0 when the promotion holds, 8 when it does not, 1 when the file is none.
    """
    if repro != (kit_folder is not None) or (repro and project is None):
        raise UsageError("--repro takes the commits and the kit: give --project and --kit with it")
    if not file.is_file():
        said = f"{file} is no file" if file.exists() else f"there is no file {file}"
        raise CommandEnds(Exit.NOT_FOUND, said)
    if project is not None:
        _check_repository(project)
    with file.open("rb") as opened:
        raw = opened.read(MOST_FILE_BYTES + 1)
    if raw.startswith(_SQLITE):
        said = f"{file} is a ledger and no promotion file: thermite audit checks it"
        raise CommandEnds(Exit.FAILED, said)
    found = verify(raw, None if rig_key is None else _key(rig_key))
    problem = found.problem or (None if project is None else _project_problem(found, project))
    proof: report.Proof = "not proven" if project is None or problem is not None else "proven"
    patch = None if found.patch is None else proof
    parts = report.parts(command=found.command, patch=patch)
    told = report.document(found) | {"holds": problem is None, "problem": problem}
    here = _repro(output, found, problem, project, kit_folder)
    if here is not None:
        told |= {"repro": msgspec.to_builtins(here)}
    output.document(told | {"parts": parts})
    for line in report.lines(found.summary):
        output.result(line)
    for line in [] if here is None else report.repro_lines(found.summary, here):
        output.result(visible(line))
    _tell(output, found, parts, problem)
    if problem is not None:
        raise CommandEnds(Exit.AUDIT_FINDING)


def _repro(
    output: Output, found: Carried, problem: str | None, project: Path | None, kit: Path | None
) -> Repro | None:
    """Return what this machine says of the two commits, when it was asked."""
    if project is None or kit is None:
        return None
    if problem is not None:
        return Repro(problem="the check of the file failed, and that comes first")
    from thermite.harness.judge_again import judge_again  # noqa: PLC0415 - a check needs no harness

    with pulse(output, f"judging {found.summary.candidate.commit[:12]} here"):
        return judge_again(found.summary, project, kit)


def _tell(
    output: Output, found: Carried, parts: Mapping[str, str | None], problem: str | None
) -> None:
    if problem is None:
        open_coin = ", coin not yet revealed" if found.coin_open else ""
        output.result(f"PASS: {found.events} of {found.size} events, signed{open_coin}")
        for line in report.part_lines(parts):
            output.result(line)
    else:
        output.result(f"FAIL: {problem}")
    if not found.key_pinned:
        output.result("key not pinned: name the rig's key with --rig-key")
    output.result(report.LIMITS)


def _key(told: str) -> PublicKey:
    path = Path(told)
    text = told
    is_file = path.is_file()
    if is_file:
        with path.open("rb") as file:
            text = file.read(_MOST_KEY_BYTES).decode("utf-8", "replace")
    words = text.split()
    line = text.strip() if len(words) > 1 else f"thermite-ed25519 {text.strip()}"
    if not words:
        raise UsageError(f"{told} holds no key: write `thermite-ed25519 <base64> <label>`")
    try:
        return PublicKey.from_line(line)[0]
    except UsageError as error:
        place = told if is_file else f"--rig-key {told[:80]!r} is no file, and as a public line"
        raise UsageError(f"{place}: {error}") from None


def _check_repository(project: Path) -> None:
    """Refuse what is no repository: a slip of the one who asks is nothing against the promotion.

    Raises:
        NotFoundError: there is no such folder.
        UsageError: it is no git repository.
    """
    if not project.is_dir():
        raise NotFoundError(f"there is no folder {project}: name a repository with --project")
    try:
        git(project, "rev-parse", "--git-dir")
    except GitError:
        raise UsageError(
            f"{project} is no git repository: name one that has both commits, as"
            " repos/project-NAME.git in the rig's folder"
        ) from None


def _project_problem(found: Carried, project: Path) -> str | None:
    """Return why a repository does not show what the file says, or None."""
    problem = _tree_problem(found, project)
    if problem is not None or found.patch is None:
        return problem
    summary = found.summary
    try:
        made = tree_after(project, summary.champion.tree, found.patch.encode())
    except GitError as error:
        return f"its patch does not fit the champion's tree: {error}"
    if made != summary.candidate.tree:
        return f"its patch makes tree {made} of the champion, and {summary.candidate.tree} is told"
    return None


def _tree_problem(found: Carried, project: Path) -> str | None:
    """Return why a repository's commits are not those that were judged, or None."""
    for arm in (found.summary.candidate, found.summary.champion):
        try:
            said = git(project, "rev-parse", "--verify", f"{arm.commit}^{{tree}}", "--")
        except GitError:
            return (
                f"{project} has no commit {arm.commit}: name a repository that has it, as"
                " repos/project-NAME.git in the rig's folder, or fetch it from there"
            )
        tree = said.decode("ascii", "replace").split()[0]
        if tree != arm.tree:
            return f"commit {arm.commit} has tree {tree} in {project}, and {arm.tree} was judged"
    return None
