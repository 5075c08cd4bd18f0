"""`thermite audit`: read a ledger from outside, and say what is not as it must be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
import msgspec

from thermite.audit.changes import read_changes
from thermite.audit.rejudge import rejudge
from thermite.audit.verify import audit, prove
from thermite.cli.arguments import PATH, TEXT, Whole
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.ledger_file import ledger_at
from thermite.cli.output import Output, with_output
from thermite.cli.pulse import pulse
from thermite.command.public_key import PublicKey
from thermite.errors import LedgerError, UsageError
from thermite.report import audit as report
from thermite.report.rebuilt import lines as rebuilt_lines
from thermite.report.rejudged import lines as rejudged_lines
from thermite.schema.rebuilt import Mismatch, Rebuilt
from thermite.schema.rejudged import Difference, Rejudged

MOST_KEY_FILE_BYTES = 64 * 1024
"""A file of public lines: 64 keys of 128 characters take 8 kB."""


NOT_JUDGED: Final = Rejudged(
    differences=[
        Difference(
            seq=0,
            what="ledger",
            attempt=None,
            recorded="events",
            recomputed="not judged again: what the audit found comes first",
        )
    ]
)
"""Of a ledger that is not even whole: its events mean nothing."""


NOT_MADE: Final = Rebuilt(
    mismatches=[
        Mismatch(
            file="ledger.db",
            place="events",
            key="",
            stands="not as they were",
            events_say="what the audit found comes first",
        )
    ]
)
"""Of such a ledger, too."""


@click.command("audit", epilog="Example: thermite audit rig/ledger.db --against receipts/")
@click.argument("ledger", type=PATH)
@click.option(
    "--against",
    multiple=True,
    type=PATH,
    help="A checkpoint, receipt or promotion file from elsewhere, or a folder of them.",
)
@click.option("--keys", type=PATH, help="Public lines of the rig keys you trust.")
@click.option(
    "--prove", "seq", type=Whole(1), help="Print the proof that this event is in the ledger."
)
@click.option("--rejudge", "again", is_flag=True, help="Judge again from runs and checks alone.")
@click.option(
    "--set",
    "changes",
    type=TEXT,
    multiple=True,
    metavar="NAME=VALUE",
    help="With --rejudge: what another rule would have said, e.g. objective.min_effect=0.01.",
)
@click.option(
    "--rebuild", "anew", is_flag=True, help="Make views.db and trust.json anew, and compare them."
)
@click.option("--strict", is_flag=True, help="End with 8 for warnings, too.")
@with_output
def command(  # noqa: PLR0913 - an option each
    output: Output,
    *,
    ledger: Path,
    against: tuple[Path, ...],
    keys: Path | None,
    seq: int | None,
    again: bool,
    changes: tuple[str, ...],
    anew: bool,
    strict: bool,
) -> None:
    """Check a ledger: its hashes, its signatures and its history.

    LEDGER is the file, live or copied, or the rig's folder. It is only read. Ends with 0 when
    it is clean, 8 with a finding, 1 when it can't be read and 3 when there is none.
    """
    if changes and not again:
        raise UsageError("--set is for --rejudge: give both")
    rule = read_changes(changes)
    path = ledger_at(ledger)
    try:
        trusted = [] if keys is None else _public_keys(keys)
        if seq is not None:
            proof = prove(path, seq, trusted=trusted)
            output.document({"proof": proof})
            for line in report.proof_lines(proof):
                output.result(line)
            return
        with pulse(output, f"auditing {path}", at_once=False):
            found = audit(path, against=against, trusted=trusted)
    except FileNotFoundError as error:
        raise CommandEnds(Exit.NOT_FOUND, str(error)) from None
    document, lines = report.document(found), report.lines(found)
    differ = False
    if again:
        with pulse(output, f"judging {path} again", at_once=False):
            judged = NOT_JUDGED if found.fails else _judged_again(path, rule)
        document["rejudged"] = msgspec.to_builtins(judged)
        lines = [*rejudged_lines(judged), *lines]
        differ = bool(judged.differences)
    if anew:
        made = NOT_MADE if found.fails else _made_anew(path)
        document["rebuilt"] = msgspec.to_builtins(made)
        lines = [*rebuilt_lines(made), *lines]
        differ = differ or bool(made.mismatches)
    output.document(document)
    for line in lines:
        output.result(line)
    if differ or found.fails or (strict and found.findings):
        raise CommandEnds(Exit.AUDIT_FINDING)


def _judged_again(path: Path, changes: Mapping[str, object]) -> Rejudged:
    """Return what judging again finds.

    Raises:
        CommandEnds: the ledger can't be read to its end.
    """
    try:
        return rejudge(path, changes)
    except LedgerError as error:
        raise CommandEnds(Exit.FAILED, str(error)) from None


def _made_anew(path: Path) -> Rebuilt:
    """Return what making the projections anew finds.

    Raises:
        CommandEnds: the ledger or a file beside it can't be read.
    """
    from thermite.audit.rebuild import rebuild  # noqa: PLC0415 - help needs no sqlite_utils

    try:
        return rebuild(path)
    except LedgerError as error:
        raise CommandEnds(Exit.FAILED, str(error)) from None


def _public_keys(path: Path) -> list[PublicKey]:
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with path.open("rb") as file:
            text = file.read(MOST_KEY_FILE_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read as public lines: {error}") from None
    plain = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not plain:
        raise UsageError(f"{path} holds no public line: write `thermite-ed25519 <base64> <label>`")
    return [PublicKey.from_line(line)[0] for line in plain]
