"""Exit codes, and whose fault ends a command with which.

Source: docs/reference/command-line.md, Exit codes.
"""

from enum import IntEnum
from typing import Final

from thermite import errors


class Exit(IntEnum):
    """How a command ended, for scripts."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    WRONG_STATE = 5
    UNREACHABLE = 6
    TIMEOUT = 7
    AUDIT_FINDING = 8
    BUDGET = 9
    INFRASTRUCTURE = 10
    INTERRUPTED = 130


class CommandEnds(Exception):  # noqa: N818 - it isn't always an error: a budget is reached, too
    """A subcommand ends here with this exit code; the text is for a person, or empty."""

    def __init__(self, code: Exit, message: str = "") -> None:
        super().__init__(message)
        self.code = code


FAULT_EXITS: Final[tuple[tuple[type[errors.ThermiteError], Exit], ...]] = (
    (errors.CommandError, Exit.REFUSED),
    (errors.KitError, Exit.REFUSED),
    (errors.ContractError, Exit.REFUSED),
    (errors.LedgerError, Exit.FAILED),
    (errors.InfrastructureError, Exit.INFRASTRUCTURE),
    (errors.UnreachableError, Exit.UNREACHABLE),
    (errors.NotFoundError, Exit.NOT_FOUND),
    (errors.UsageError, Exit.USAGE),
    (errors.ThermiteError, Exit.FAILED),
)
"""The first class that fits decides."""


def exit_of(error: Exception) -> Exit:
    """Return the exit code that says whose fault an error is."""
    if isinstance(error, CommandEnds):
        return error.code
    return next((code for kind, code in FAULT_EXITS if isinstance(error, kind)), Exit.FAILED)
