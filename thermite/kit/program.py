"""The programs that a kit's commands begin with: why one of the kit's own can't be executed.

A kernel says "No such file" of a script that is there, when the interpreter in its first line
is not; Windows' line ends do that to every script. Nothing is executed here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thermite.kit.placeholder import leaves_its_folder, placeholders
from thermite.schema.kit import Kit

_HEAD_BYTES: Final = 256
"""As much of a first line as Linux reads (BINPRM_BUF_SIZE)."""
_MOST_SCRIPT: Final = 1 << 20
_SHELLS: Final = frozenset({"sh", "bash", "dash", "/bin/sh", "/bin/bash"})
_ANYBODY_EXECUTES: Final = 0o111
_KIT_IN_SOURCE: Final = ".kit/"


def not_executable(file: Path) -> str | None:
    """Return why the kernel refuses to execute a file that is there, None where it may."""
    if not file.is_file():
        return None
    if not file.stat().st_mode & _ANYBODY_EXECUTES:
        return "it is not executable (chmod +x)"
    with file.open("rb") as opened:
        first, _, _ = opened.read(_HEAD_BYTES).partition(b"\n")
    if not first.startswith(b"#!"):
        return None
    if first.endswith(b"\r"):
        return "its line 1 ends with a carriage return: save it with Unix line ends"
    interpreter = first[2:].split(maxsplit=1)[:1]
    if interpreter and not Path(interpreter[0].decode("utf-8", "surrogateescape")).exists():
        return f"its interpreter {ascii(interpreter[0])[2:-1]} is not there"
    return None


def own_file(word: str) -> str | None:
    """Return the path in the kit of a program that a command's word names, None for others.

    A build finds the kit below `.kit`; runs and checks name it `{kit:path}`.
    """
    if word.startswith(_KIT_IN_SOURCE):
        return word.removeprefix(_KIT_IN_SOURCE)
    for one in placeholders([word]):
        if one.name == "kit" and one.below and not leaves_its_folder(one.below):
            return one.below
    return None


def is_candidates(word: str) -> bool:
    """Return whether a command's first word names a file that a candidate brings or builds."""
    if any(one.name == "build" for one in placeholders([word])):
        return True
    return "/" in word and not word.startswith(("/", _KIT_IN_SOURCE)) and own_file(word) is None


def refusal(stage: str, word: str, said: str, kit: Path) -> str:
    """Return the words for a command of the kit that could not be executed.

    stage: build, run or check; word: the command's first, as the kit writes it; said: by the
    kernel; kit: the kit's folder.
    """
    path = own_file(word)
    why = None if path is None else not_executable(kit / path)
    because = f": {why}" if why else ""
    return f"the kit's {stage} can't be executed: {word}: {said}{because}"


def program_warnings(kit: Kit, folder: Path) -> Iterator[str]:
    """Yield what of a kit's own programs will not start, or not as its author means."""
    sections = (
        ("build", kit.build.command),
        ("run", kit.run.command),
        ("check", kit.check.command),
    )
    for section, words in sections:
        first = own_file(words[0])
        why = None if first is None else not_executable(folder / first)
        if why is not None:
            yield f"{section}.command: {first} can't be executed: {why}"
        script = own_file(words[1]) if words[0] in _SHELLS and len(words) > 1 else None
        if script is not None and _has_carriage_returns(folder / script):
            yield (
                f"{section}.command: {script} has carriage returns at its line ends, which"
                f" {words[0]} takes as part of each line: save it with Unix line ends"
            )


def _has_carriage_returns(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return b"\r\n" in opened.read(_MOST_SCRIPT)
