"""The thread that brings imports in, and what to do when some are missing.

Missing and with a source: the supervisor is asked to fetch it, three times at most. Missing
without: the command waits until it expires. There with other bytes: it may still be being
written, so it is looked at once more. Source: ledger and signing, 3.9, step 13.
"""

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from thermite.errors import CommandError, InfrastructureError
from thermite.harness.assign_campaign import check_kit
from thermite.harness.case import Assigning
from thermite.harness.folder import RigFolder
from thermite.harness.import_kit import Importer, MissingError
from thermite.schema.command import Import, ModelFile
from thermite.schema.event import ImportCompleted
from thermite.schema.goal_rules import GoalRules
from thermite.schema.offer import Fetch, Ready, WantedSource

MOST_TRIES: Final = 3
"""Fetches of one command that may fail (ledger and signing, 3.9, step 13)."""
RETRY: Final = timedelta(seconds=10)
"""Between two of them: long enough for a server to come back (our figure)."""
LOOK_AGAIN: Final = timedelta(seconds=5)
"""A missing file is looked for at each rescan."""
SETTLE_S: Final = 2.0
"""A file with other bytes that stays so is refused (ledger and signing, 1.4)."""

Recorded: TypeAlias = Collection[tuple[str, str, str]]


@dataclass(frozen=True)
class Brought:
    """Everything is on the rig and fits; imports: the events for what is new."""

    assigning: Assigning
    imports: list[ImportCompleted]
    goals: GoalRules | None


@dataclass(frozen=True)
class Failed:
    """Something is missing, bad or the rig's fault."""

    assigning: Assigning
    error: CommandError | MissingError | InfrastructureError


@dataclass(frozen=True)
class PutOff:
    """The command waits: offer it again at a scan after `until`."""

    error: CommandError
    until: datetime


Result: TypeAlias = Brought | Failed


class ImportQueue:
    """One import at a time, in a thread of its own."""

    def __init__(
        self,
        importer: Importer,
        folder: RigFolder,
        target: str,
        recorded: Callable[[], Recorded],
        wake: Callable[[], None],
        *,
        check_secrets: Callable[[Assigning], None],
    ) -> None:
        self._importer, self._folder, self._target = importer, folder, target
        self._recorded, self._wake, self._check_secrets = recorded, wake, check_secrets
        self._waiting: SimpleQueue[Assigning | None] = SimpleQueue()
        self._results: SimpleQueue[Result | BaseException] = SimpleQueue()
        self._tries: dict[str, int] = {}
        self._odd: dict[str, tuple[str, float]] = {}
        self._thread = threading.Thread(target=self._work, name="imports", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more; what is being brought in is begun again after the next start."""
        self._waiting.put(None)

    def put(self, assigning: Assigning) -> None:
        """Bring in what a command imports; the result comes out of `results`."""
        self._waiting.put(assigning)

    def results(self) -> list[Result]:
        """Return what has come to an end.

        Raises:
            BaseException: a fault of ours in the thread.
        """
        found: list[Result] = []
        while True:
            try:
                one = self._results.get_nowait()
            except Empty:
                return found
            if isinstance(one, BaseException):
                raise one
            found.append(one)

    def remove(self, imports: Sequence[Import]) -> None:
        """Remove files from the inbox: they are on the rig, or of no use."""
        self._importer.clear(imports)

    def remove_kept(self, imports: Sequence[Import]) -> None:
        """Remove the files of a refused order that were brought in; others may be put right."""
        self._importer.clear_kept(imports)

    def forget(self, digest: str) -> None:
        """Forget what went wrong with a command: it is decided."""
        self._tries.pop(digest, None)
        self._odd.pop(digest, None)

    def after_missing(
        self, assigning: Assigning, error: MissingError, now: datetime
    ) -> Fetch | PutOff:
        """Return what to do about missing files.

        Raises:
            CommandError: the command's time is over, or the wrong bytes stay.
        """
        wanted = [assigning.body.imports[number] for number in error.numbers]
        if all(one.source is not None for one in wanted) and not any(
            isinstance(one, ModelFile) for one in wanted
        ):
            return Fetch(n=assigning.case.n, sources=_sources(error.numbers, wanted))
        refusal = CommandError(error.code, str(error))
        if now >= assigning.command.expires_at:
            raise refusal
        if error.code == "bundle_hash":
            return self._look_again(assigning, refusal, now)
        return PutOff(refusal, now + LOOK_AGAIN)

    def after_fetch(self, assigning: Assigning, ready: Ready, now: datetime) -> PutOff | None:
        """Take in what was fetched; None: everything is there now.

        Raises:
            CommandError: `fetch_failed`, for the third time.
        """
        if not ready.failed:
            assigning.fetched.update(one.import_ for one in ready.files)
            return None
        said = "; ".join(f"imports[{one.import_}]: {one.message}" for one in ready.failed)
        refusal = CommandError("fetch_failed", said)
        digest = assigning.command.digest
        self._tries[digest] = self._tries.get(digest, 0) + 1
        if self._tries[digest] >= MOST_TRIES:
            raise refusal
        return PutOff(refusal, now + RETRY)

    def _look_again(self, assigning: Assigning, refusal: CommandError, now: datetime) -> PutOff:
        """Wait for a file that may still be being written; refuse one that stays as it is."""
        digest, text = assigning.command.digest, str(refusal)
        seen, since = self._odd.get(digest, ("", 0.0))
        if seen == text and time.monotonic() - since >= SETTLE_S:
            raise refusal
        if seen != text:
            self._odd[digest] = text, time.monotonic()
        return PutOff(refusal, now + timedelta(seconds=SETTLE_S))

    def _work(self) -> None:
        while (assigning := self._waiting.get()) is not None:
            self._results.put(self._bring(assigning))
            self._wake()

    def _bring(self, assigning: Assigning) -> Result | BaseException:
        try:
            imports = self._importer.bring_in(
                assigning.body.imports, self._recorded(), assigning.fetched
            )
            goals = check_kit(assigning.body, assigning.contract, self._folder, self._target)
            self._check_secrets(assigning)
        except (CommandError, MissingError, InfrastructureError) as error:
            return Failed(assigning, error)
        except OSError as error:
            trouble = InfrastructureError(f"the rig can't keep the import: {error.strerror}")
            return Failed(assigning, trouble)
        except Exception as error:  # noqa: BLE001 - a thread's fault must not pass unseen
            return error
        return Brought(assigning, imports, goals)


def _sources(numbers: Collection[int], wanted: Collection[Import]) -> list[WantedSource]:
    return [
        WantedSource(
            import_=number, source=one.source, repo=one.repo, commit=one.commit, path=one.path
        )
        for number, one in zip(numbers, wanted, strict=True)
        if one.source is not None and not isinstance(one, ModelFile)
    ]
