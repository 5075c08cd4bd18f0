"""The subcommands: where each lives, and its line in `thermite --help`.

A module is imported only when its command is chosen. It holds one click command or
group with the name `command`. A name of two words stands beside a command that takes an
argument of its own: `thermite judge .` judges, `thermite judge simulate` simulates, and a
folder of that name is `./simulate`.
"""

from typing import Final, NamedTuple


class Subcommand(NamedTuple):
    """Where a subcommand lives, and what it is for in a few words."""

    module: str
    about: str


COMMANDS: Final[dict[str, Subcommand]] = {
    "demo": Subcommand("thermite.cli.demo", "all of it at work: no GPU, no API key, no root"),
    "init": Subcommand("thermite.cli.init", "a project and a contract to start from"),
    "judge": Subcommand("thermite.cli.judge", "one verdict here and now: a folder or a commit"),
    "judge simulate": Subcommand(
        "thermite.cli.judge_simulate", "the rule beside others, on gains that are known"
    ),
    "keygen": Subcommand("thermite.cli.keygen", "make a key to sign with"),
    "key": Subcommand("thermite.cli.key", "your keys, and what a rig trusts"),
    "rig": Subcommand("thermite.cli.rig", "add, list and serve rigs"),
    "assign": Subcommand("thermite.cli.assign", "complete a contract, sign it, send it to a rig"),
    "estimate": Subcommand("thermite.cli.estimate", "what a contract costs, what the rig sees"),
    "campaign": Subcommand(
        "thermite.cli.campaign", "pause, stop, steer, vote on one; report, compare"
    ),
    "settings": Subcommand("thermite.cli.settings", "what control knows, as MCP servers"),
    "receipts": Subcommand("thermite.cli.receipts", "what rigs answered"),
    "inbox": Subcommand("thermite.cli.inbox", "a rig's inbox by hand"),
    "kit": Subcommand("thermite.cli.kit", "tools for the authors of kits"),
    "watch": Subcommand("thermite.cli.watch", "a rig's campaign as it runs"),
    "status": Subcommand("thermite.cli.status", "where a rig's campaigns stand"),
    "verdicts": Subcommand("thermite.cli.verdicts", "what the judge said of each attempt"),
    "show": Subcommand("thermite.cli.show", "one attempt, whole, and how to judge it again"),
    "export": Subcommand("thermite.cli.export", "one promotion with its evidence, in one file"),
    "verify": Subcommand("thermite.cli.verify", "check such a file on any machine"),
    "ledger": Subcommand("thermite.cli.ledger", "look at a ledger, carry it away"),
    "audit": Subcommand("thermite.cli.audit", "check a ledger from outside"),
}
"""In the order in which a newcomer needs them; `thermite --help` keeps it."""
