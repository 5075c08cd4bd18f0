"""The error tree: whose fault it is decides the class.

    ThermiteError
    ├── CommandError          the sender of a signed command (has a refusal code)
    ├── KitError              the author of a kit
    ├── ContractError         the author of a contract
    ├── LedgerError           the ledger's file, or whoever changed it
    │   ├── LedgerBusyError          another process that has it just now
    │   └── LedgerUnavailableError   its disk: nothing more is accepted
    ├── InfrastructureError   the rig or the kit at run time: the verdict `crash_infra`
    ├── UnreachableError      a rig's inbox or outbox is not there, or can't be written
    └── UsageError            whoever typed a command line or wrote a settings file
        └── NotFoundError     what they named is not there

A bug of ours is a RuntimeError. A candidate's failure is never an exception: it is
a value on its way to a verdict. Only `harness`, `cli` and `supervisor` catch these.
"""


class ThermiteError(Exception):
    """A problem that is somebody's to mend; the text says what, which value, what to do."""


class CommandError(ThermiteError):
    """A signed command is refused.

    Args:
        code: one of the refusal codes of the page on signed commands, e.g. `wrong_rig`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class KitError(ThermiteError):
    """A kit can't be used; the text joins all its problems with `; `."""


class ContractError(ThermiteError):
    """A contract can't be used; the text joins all its problems with `; `."""


class LedgerError(ThermiteError):
    """The ledger can't be read, or must not be written to."""


class LedgerBusyError(LedgerError):
    """Another process writes to the ledger: it can be had when that one has ended."""


class LedgerUnavailableError(LedgerError):
    """The ledger's disk refused a write: nothing more is accepted until it is opened again."""


class InfrastructureError(ThermiteError):
    """The rig or the kit failed while a candidate was judged; never the candidate's fault."""


class UsageError(ThermiteError):
    """A command line or a settings file asks for something that can't be had."""


class NotFoundError(UsageError):
    """A command line names something that is not there; the text says what is."""


class UnreachableError(ThermiteError):
    """A rig can't be reached from here: its folder or address is not there, or closed."""
