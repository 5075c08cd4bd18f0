"""`thermite kit`: tools for the authors of kits."""

from typing import Final

from thermite.cli.commands import Subcommand
from thermite.cli.noun import LazyNounGroup

TABLE: Final = {
    "list": Subcommand("thermite.cli.kit_list", "the kits that control keeps"),
    "check": Subcommand("thermite.cli.kit_check", "everything that is wrong with a kit"),
}

command = LazyNounGroup("kit", table=TABLE, about="Check kits, and list those that control keeps.")
