"""`thermite audit`: read a ledger from outside, and say what is not as it must be."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
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
LARGE_BYTES: Final = 1 << 28
"""A ledger of which it is said at once that it is read: a quarter of a GiB takes seconds."""


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
@click.argument("ledger", type=PATH, required=False)
@click.option("--state", type=PATH, help="The rig's folder, as other commands name it.")
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
    ledger: Path | None,
    state: Path | None,
    against: tuple[Path, ...],
    keys: Path | None,
    seq: int | None,
    again: bool,
    changes: tuple[str, ...],
    anew: bool,
    strict: bool,
) -> None:
    """Check a ledger: its hashes, its signatures and its history.

    LEDGER is the file, live or copied, or the rig's folder, which --state names too. It is only
    read. Ends with 0 when it is clean, 8 with a finding, 1 when it can't be read and 3 when there
    is none.
    """
    if changes and not again:
        raise UsageError("--set is for --rejudge: give both")
    rule = read_changes(changes)
    path = ledger_at(_one_of(ledger, state))
    try:
        trusted = [] if keys is None else _public_keys(keys)
        if seq is not None:
            with _told(output, path) as tell:
                proof = prove(path, seq, trusted=trusted, tell=tell)
            output.document({"proof": proof})
            for line in report.proof_lines(proof):
                output.result(line)
            return
        with _told(output, path) as tell:
            found = audit(path, against=against, trusted=trusted, tell=tell)
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


@contextmanager
def _told(output: Output, path: Path) -> Iterator[Callable[[str], None]]:
    """Yield who an audit tells how far it is, and say it now and then."""
    size = path.stat().st_size
    far = deque([f"{size / 1e6:,.0f} MB"], maxlen=1)
    with pulse(output, lambda: f"auditing {path}: {far[-1]}", at_once=size >= LARGE_BYTES):
        yield far.append


def _one_of(ledger: Path | None, state: Path | None) -> Path:
    """Return what is to be audited.

    Raises:
        UsageError: nothing is named, or two things are.
    """
    named = [one for one in (ledger, state) if one is not None]
    if len(named) != 1:
        said = "both are given" if named else "none is given"
        raise UsageError(f"which ledger? name LEDGER, or the rig's folder with --state: {said}")
    return named[0]


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
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} holds no public lines: it is not UTF-8") from None
    plain = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not plain:
        raise UsageError(f"{path} holds no public line: write `thermite-ed25519 <base64> <label>`")
    return [PublicKey.from_line(line)[0] for line in plain]
