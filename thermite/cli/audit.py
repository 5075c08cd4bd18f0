"""`thermite audit`: read a ledger from outside, and say what is not as it must be."""

from pathlib import Path

import click

from thermite.audit.verify import audit, prove
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.ledger_file import ledger_at
from thermite.cli.output import Output, with_output
from thermite.command.public_key import PublicKey
from thermite.errors import UsageError
from thermite.report import audit as report

MOST_KEY_FILE_BYTES = 64 * 1024
"""A file of public lines: 64 keys of 128 characters take 8 kB."""


@click.command("audit", epilog="Example: thermite audit rig/ledger.db --against receipts/")
@click.argument("ledger", type=click.Path(path_type=Path))
@click.option(
    "--against",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A checkpoint, receipt or promotion file from elsewhere, or a folder of them.",
)
@click.option(
    "--keys", type=click.Path(path_type=Path), help="Public lines of the rig keys you trust."
)
@click.option("--prove", "seq", type=int, help="Print the proof that this event is in the ledger.")
@click.option("--strict", is_flag=True, help="End with 8 for warnings, too.")
@with_output
def command(
    output: Output,
    *,
    ledger: Path,
    against: tuple[Path, ...],
    keys: Path | None,
    seq: int | None,
    strict: bool,
) -> None:
    """Check a ledger: its hashes, its signatures and its history.

    LEDGER is the file, live or copied, or the rig's folder. It is only read. Ends with 0 when
    it is clean, 8 with a finding, 1 when it can't be read and 3 when there is none.
    """
    path = ledger_at(ledger)
    try:
        trusted = [] if keys is None else _public_keys(keys)
        if seq is not None:
            proof = prove(path, seq, trusted=trusted)
            output.document({"proof": proof})
            for line in report.proof_lines(proof):
                output.result(line)
            return
        found = audit(path, against=against, trusted=trusted)
    except FileNotFoundError as error:
        raise CommandEnds(Exit.NOT_FOUND, str(error)) from None
    output.document(report.document(found))
    for line in report.lines(found):
        output.result(line)
    if found.fails or (strict and found.findings):
        raise CommandEnds(Exit.AUDIT_FINDING)


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
