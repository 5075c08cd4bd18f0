"""`thermite rig add`: take up a rig by its inbox."""

import click

from thermite.cli.arguments import PLACE, TEXT
from thermite.cli.control_side import with_home
from thermite.cli.output import Output, with_output
from thermite.control.home import ControlHome
from thermite.control.receipts import keep_checkpoints
from thermite.control.rigs import add_rig, known_rigs


@click.command("add", epilog="Example: thermite rig add bench --inbox /srv/rig/inbox")
@click.argument("name", type=TEXT)
@click.option(
    "--inbox", type=PLACE, required=True, help="The rig's inbox folder; its outbox lies beside it."
)
@click.option(
    "--fingerprint", type=TEXT, help="The fingerprint that rig serve printed; it must be the rig's."
)
@with_home
@with_output
def command(
    output: Output, *, home: ControlHome, name: str, inbox: str, fingerprint: str | None
) -> None:
    """Read the card that a rig has signed, and keep it under NAME."""
    rig, card = add_rig(home, name, inbox, fingerprint)
    if card.checkpoint:
        keep_checkpoints(home, rig, [card.checkpoint])
    if fingerprint is None:
        output.warn(
            f"the rig's key was taken on its own word: compare {rig.public.fingerprint} with what"
            " rig serve printed"
        )
    others = [one for one, known in known_rigs(home).items() if known.rig == rig.rig]
    if others != [name]:
        also = ", ".join(one for one in others if one != name)
        output.warn(
            f"this is the rig that is known as {also}, too: lists show its campaigns under each"
            f" name; for one name take the others' tables out of {home.rigs}"
        )
    output.document(
        {
            "name": name,
            "rig": rig.rig,
            "fingerprint": rig.public.fingerprint,
            "ledger": rig.ledger,
            "target": rig.target,
            "isolation": rig.isolation,
            "grade": rig.grade,
            "sees": rig.sees,
            "inbox": rig.inbox,
        }
    )
    output.result(f"rig {name} is {rig.rig}, target {rig.target}, isolation {rig.isolation}")
    output.result(f"fingerprint {rig.public.fingerprint}")
