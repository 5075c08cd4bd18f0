"""What the exit code of a build or a run that failed tells: which signal ended it.

A reason has the document's own words, `exit 132: …`, and a shell's number; a note beside it names
the signal. Source: known faults, B3, B6 and P5.
"""

import signal
from collections.abc import Iterable
from typing import Final

from thermite.judge.verdict import reason
from thermite.schema.event import Build, Run
from thermite.schema.kit import Kit
from thermite.schema.strict import Strict

_FIRST: Final = 128
"""A shell's code of a program that signal n ended is this and n."""
_NO_LIMIT: Final = "no limit of the kit ended it"
_MEANING: Final = {
    signal.SIGILL: "it executed an instruction that this processor lacks",
    signal.SIGTRAP: "it came to a trap",
    signal.SIGABRT: "it gave up by itself, as abort() does",
    signal.SIGBUS: "it used memory whose file has no such part",
    signal.SIGFPE: "it divided by zero",
    signal.SIGKILL: _NO_LIMIT,
    signal.SIGSEGV: "it read or wrote where nothing is, or its stack ran over",
    signal.SIGTERM: _NO_LIMIT,
    signal.SIGXFSZ: "a file was to grow over the kit's limit: {where}.disk_mib is {disk_mib}",
    signal.SIGSYS: "it made a system call that no stage may make",
}


def signal_notes(facts: Iterable[Strict], kit: Kit) -> list[str]:
    """Return a note for each signal that the exit code of a build or a run tells."""
    return list(dict.fromkeys(note for fact in facts for note in _notes(fact, kit)))


def _notes(fact: Strict, kit: Kit) -> list[str]:
    if isinstance(fact, Build) and fact.outcome == "build_failed":
        told = {number: reason.build_failed(_FIRST + number, b"") for number in _MEANING}
        return _named(fact.reason, told, "build", kit.build.disk_mib)
    if isinstance(fact, Run) and fact.outcome == "run_exited":
        told = {number: reason.run_exited(_FIRST + number, b"") for number in _MEANING}
        return _named(fact.reason, told, "run", kit.run.disk_mib)
    return []


def _named(
    said: str | None, told: dict[signal.Signals, str], where: str, disk_mib: int
) -> list[str]:
    """Return the note of the signal whose reason was said; none where no signal is told."""
    return [
        f"exit {_FIRST + number} means {number.name}, unless the program chose that number:"
        f" {_MEANING[number].format(where=where, disk_mib=disk_mib)}"
        for number, begins in told.items()
        if (said or "").startswith(begins)
    ]
