"""`thermite rig`: the rigs that control knows, and the rig's own side."""

from thermite.cli.commands import Subcommand
from thermite.cli.noun import LazyNounGroup

command = LazyNounGroup(
    "rig",
    about="Rigs: add and list them on control, serve one and give it accesses on its machine.",
    table={
        "add": Subcommand("thermite.cli.rig_add", "take up a rig by its inbox"),
        "list": Subcommand("thermite.cli.rig_list", "the rigs that control knows"),
        "access": Subcommand("thermite.cli.rig_access", "secrets for private repositories"),
        "init": Subcommand("thermite.cli.rig_init", "make a rig's accounts and its folder"),
        "remove": Subcommand("thermite.cli.rig_remove", "undo what init made, nothing else"),
        "doctor": Subcommand("thermite.cli.rig_doctor", "how this machine keeps stages apart"),
        "selftest": Subcommand("thermite.cli.rig_selftest", "how small a gain a rig sees"),
        "serve": Subcommand("thermite.cli.rig_serve", "serve a rig on this machine"),
    },
)
