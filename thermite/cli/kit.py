"""`thermite kit`: tools for the authors of kits."""

from typing import Final

from thermite.cli.commands import Subcommand
from thermite.cli.noun import LazyNounGroup

TABLE: Final = {
    "list": Subcommand("thermite.cli.kit_list", "the kits that --kit knows by name"),
    "new": Subcommand("thermite.cli.kit_new", "a kit that works, to start from"),
    "check": Subcommand("thermite.cli.kit_check", "everything that is wrong with a kit"),
    "fit": Subcommand("thermite.cli.kit_fit", "does a kit fit a contract?"),
    "show": Subcommand("thermite.cli.kit_show", "what a judge does with a kit, in words"),
    "test": Subcommand("thermite.cli.kit_test", "known candidates against what is expected"),
    "bundle": Subcommand("thermite.cli.kit_bundle", "a kit as one file that travels"),
}

command = LazyNounGroup(
    "kit", table=TABLE, about="Write, check and carry kits; list those that control keeps."
)
