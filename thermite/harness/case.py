"""One file that the supervisor handed over, on its way to an answer."""

from dataclasses import dataclass, field
from datetime import datetime

from thermite.command.verify import Command
from thermite.harness.inbox import Which
from thermite.schema.command import AssignBody
from thermite.schema.contract import Contract


@dataclass(frozen=True)
class Case:
    """What was handed over, and the one look at the clock that counts for it.

    n: the offer's number; sha256, size: of the file, sha256 None when it was not read.
    """

    n: int
    which: Which
    sha256: str | None
    size: int
    now: datetime


@dataclass
class Assigning:
    """An `assign_campaign` whose imports are being brought in.

    fetched: numbers of imports whose file the supervisor has fetched.
    """

    case: Case
    command: Command
    body: AssignBody
    contract: Contract
    fetched: set[int] = field(default_factory=set)
