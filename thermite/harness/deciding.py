"""From a file's bytes to an answer: steps 2 to 14 at the harness.

Neither process takes the other's word: what was offered is verified again here, and so is
what the supervisor refused if a trusted key signed it. Imports go on in a thread of their
own and come back here. Source: ledger and signing, 3.9.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

from thermite.command.verify import SKEW, Command, open_command
from thermite.errors import CommandError, InfrastructureError
from thermite.harness import clock
from thermite.harness.assign_backend import check_tools
from thermite.harness.assign_campaign import check_fitness, transaction, wanted
from thermite.harness.book import Book
from thermite.harness.case import Assigning, Case
from thermite.harness.clerk import Clerk, Owed
from thermite.harness.decide import Accept, BringIn, Duplicate
from thermite.harness.folder import RigFolder
from thermite.harness.import_kit import MissingError
from thermite.harness.import_queue import Brought, Failed, ImportQueue, PutOff, Result
from thermite.harness.unlocking import Unlocking
from thermite.rig.stages import Stages
from thermite.schema.offer import Fetch, Ready, Refuse, ToSupervisor
from thermite.schema.rig_settings import McpProgram

TROUBLE: Final = timedelta(seconds=30)
"""How long a command waits when the rig itself is in trouble (our figure)."""
BEFORE_A_SIGNATURE: Final = frozenset(
    {
        "not_a_plain_file",
        "unreadable",
        "too_large",
        "malformed_envelope",
        "unknown_payload_type",
        "no_trusted_signature",
    }
)
"""What a supervisor may say without the file's bytes: steps 1 to 4."""


class Bench(Protocol):
    """What the door needs of a rig."""

    @property
    def book(self) -> Book:
        """Ledger and state."""

    @property
    def folder(self) -> RigFolder:
        """Where things lie."""

    @property
    def stages(self) -> Stages:
        """The spawner, for slot `import`."""

    @property
    def mcp(self) -> Mapping[str, McpProgram]:
        """The MCP servers that the rig's owner keeps."""

    @property
    def unlocking(self) -> Unlocking:
        """The way to what MCP servers' headers carry."""

    @property
    def coin_key(self) -> bytes:
        """32 bytes, which make the order seeds."""


class Deciding:
    """Takes decisions and has them carried out; used by the door's one thread.

    answers: what the supervisor is told once the receipts are written; assigned: ids of
    assignments whose work starts then.
    """

    def __init__(
        self, bench: Bench, clerk: Clerk, imports: ImportQueue, say: Callable[[Fetch], None]
    ) -> None:
        self._bench, self._clerk, self._imports, self._say = bench, clerk, imports, say
        self._open: dict[int, Assigning] = {}
        self.answers: list[ToSupervisor] = []
        self.assigned: list[str] = []

    def void(self) -> None:
        """Forget what was open with a supervisor that is gone; it offers again."""
        self._open.clear()

    def consider(self, case: Case, raw: bytes) -> None:
        """Decide on an offered file.

        Raises:
            LedgerError: the ledger can't take the decision; the file stays.
        """
        opened = self._bench.book.state.opened
        if opened is None:
            raise RuntimeError("a door needs an opened ledger")
        try:
            command = open_command(
                raw, self._clerk.keyring(), rig=opened.rig, ledger=opened.ledger, now=case.now
            )
        except CommandError as error:
            self._refuse(case, error, self._clerk.owed(raw))
            return
        self._decide(case, command)

    def refused_there(self, case: Case, message: Refuse, raw: bytes | None) -> None:
        """Record what the supervisor refused; bytes of a trusted key are judged again here.

        Raises:
            LedgerError: as `consider`.
        """
        if raw is not None:
            self.consider(case, raw)
            return
        code = message.code if message.code in BEFORE_A_SIGNATURE else "unreadable"
        self._refuse(case, CommandError(code, message.message), None)

    def imported(self, result: Result) -> None:
        """Go on with a command whose imports have come to an end.

        Raises:
            LedgerError: as `consider`.
        """
        match result:
            case Brought():
                self._create(result)
            case Failed():
                self._failed(result.assigning, result.error)

    def fetched(self, message: Ready) -> None:
        """Go on with a command for which the supervisor has fetched.

        Raises:
            LedgerError: as `consider`.
        """
        one = self._open.get(message.n)
        if one is None or one.command.digest != message.digest:
            return
        try:
            put_off = self._imports.after_fetch(one, message, clock.now())
        except CommandError as error:
            self._refuse_assignment(one, error)
            return
        if put_off is None:
            self._imports.put(one)
        else:
            self._put_off(one.case, one.command, put_off)

    def _decide(self, case: Case, command: Command) -> None:
        try:
            decision = self._clerk.judge(command, case.now)
            match decision:
                case Duplicate():
                    self.answers.append(self._clerk.duplicate(case, decision.seen))
                    # A kill may have left files between COMMIT and their removal.
                    self._imports.remove(getattr(command.body, "imports", []))
                case Accept(drafts):
                    self.answers.append(self._clerk.commit(case, command, lambda: drafts))
                case BringIn():
                    state = self._bench.book.state
                    contract = wanted(decision.body, state.isolation)
                    check_fitness(contract, state.unfit)
                    assigning = Assigning(case, command, decision.body, contract)
                    self._open[case.n] = assigning
                    self._imports.put(assigning)
        except CommandError as error:
            if error.code == "not_yet_valid":
                self._put_off(case, command, PutOff(error, command.not_before - SKEW))
            else:
                self._refuse(case, error, _owed(command))
        except InfrastructureError as error:
            self._in_trouble(case, command, error, case.now)

    def _refuse(self, case: Case, error: CommandError, owed: Owed | None) -> None:
        self._open.pop(case.n, None)
        if owed is not None:
            self._imports.forget(owed.digest)
        self.answers.append(self._clerk.refuse(case, error, owed))

    def _refuse_assignment(self, one: Assigning, error: CommandError) -> None:
        """Refuse an order whose imports were looked at; what was brought in leaves the inbox."""
        self._refuse(one.case, error, _owed(one.command))
        self._imports.remove_kept(one.body.imports)

    def _put_off(self, case: Case, command: Command, why: PutOff) -> None:
        self._open.pop(case.n, None)
        self.answers.append(self._clerk.wait(case, command, why.error, why.until))

    def _create(self, brought: Brought) -> None:
        """Create the assignment: everything it needs is on the rig."""
        one = brought.assigning
        case, command, coin_key = one.case, one.command, self._bench.coin_key
        drafts = partial(
            transaction,
            command,
            one.body,
            one.contract,
            brought.imports,
            coin_key=coin_key,
            goals=brought.goals,
        )
        try:
            stages = self._bench.stages
            check_tools(
                one.contract, one.body, self._bench.mcp, stages.slot_names, stages.isolation
            )
            done = self._clerk.commit(case, command, drafts)
        except CommandError as error:
            self._refuse_assignment(one, error)
            return
        except InfrastructureError as error:
            self._in_trouble(case, command, error, clock.now())
            return
        self._open.pop(case.n, None)
        self._imports.remove(one.body.imports)
        self._imports.forget(command.digest)
        self.answers.append(done)
        if done.outcome == "accepted":
            self.assigned.append(command.assignment)

    def _failed(
        self, one: Assigning, error: CommandError | MissingError | InfrastructureError
    ) -> None:
        """Refuse, wait or have something fetched."""
        now = clock.now()
        match error:
            case CommandError():
                self._refuse_assignment(one, error)
            case MissingError():
                try:
                    step = self._imports.after_missing(one, error, now)
                except CommandError as refusal:
                    self._refuse_assignment(one, refusal)
                else:
                    self._missing(one, step)
            case InfrastructureError():
                self._in_trouble(one.case, one.command, error, now)

    def _in_trouble(
        self, case: Case, command: Command, error: InfrastructureError, now: datetime
    ) -> None:
        """Wait while the rig can't do it, as long as the command is valid."""
        trouble = CommandError("rig_trouble", str(error))
        if now >= command.expires_at:
            self._refuse(case, trouble, _owed(command))
        else:
            self._put_off(case, command, PutOff(trouble, now + TROUBLE))

    def _missing(self, one: Assigning, step: Fetch | PutOff) -> None:
        if isinstance(step, PutOff):
            self._put_off(one.case, one.command, step)
            return
        if one.case.n not in self._open:
            return  # void since the supervisor was started again
        # What lies there has other bytes, and may be somebody's whose file none can replace.
        self._imports.remove([one.body.imports[source.import_] for source in step.sources])
        self._say(step)


def _owed(command: Command) -> Owed:
    return Owed(command.digest, command.payload.id)
