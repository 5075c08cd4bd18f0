"""What a command says, and to whom: the one place that knows about its readers.

Results go to stdout, progress and warnings to stderr. With `--json`, stdout holds one
document (or one line a document, for streams) and nothing else: warnings move into it,
and progress is silent unless a person watches stderr, so that a parser fed with both
streams joined still reads one document. Escape sequences in anybody's text are made
visible; what a console's encoding lacks becomes `?`.
"""

import functools
import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Final, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console

# C0 but tab and newline, DEL and C1 are commands to a terminal; the others reorder text.
# Source: Unicode Standard Annex 9, 2.1 to 2.6.
_COMMANDS: Final = (*range(9), *range(11, 32), *range(127, 160))
_REORDERING: Final = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_WRITTEN_OUT: Final = {code: f"\\x{code:02x}" for code in _COMMANDS} | {
    code: f"\\u{code:04x}" for code in _REORDERING
}


def visible(text: str) -> str:
    """Return text with control and reordering characters written out, e.g. ESC as x1b."""
    return text.translate(_WRITTEN_OUT)


class Output:
    """The two streams of one command.

    Args:
        as_json: stdout is for a parser.
        quiet: no progress.
    """

    def __init__(
        self, *, as_json: bool = False, quiet: bool = False, out: TextIO, err: TextIO
    ) -> None:
        self.as_json = as_json
        self._out = out
        self._err = err
        self._warnings: list[str] = []
        self.shows_progress = not quiet and (err.isatty() or not as_json)

    def result(self, text: str) -> None:
        """Print a line of the result for a person; nothing with `--json`."""
        if not self.as_json:
            self._write(self._out, visible(text))

    @property
    def width(self) -> int | None:
        """Characters of a line of stdout, where a person looks at it; None: no limit."""
        return shutil.get_terminal_size().columns if is_live(self._out) else None

    def styled(self, text: str, style: str) -> None:
        """Print a line of the result for a person in a colour, where there is one."""
        if self.as_json:
            return
        if not is_live(self._out):
            self.result(text)
            return
        self.console(on_stdout=True).print(visible(text), style=style, soft_wrap=True)

    def document(self, value: dict[str, Any]) -> None:
        """Print the result for a parser, once; nothing without `--json`."""
        if self.as_json:
            whole = value | ({"warnings": self._warnings} if self._warnings else {})
            self._write(self._out, _json(whole, indent=2))

    def item(self, value: object) -> None:
        """Print one document of a stream as one line; nothing without `--json`."""
        if self.as_json:
            self._write(self._out, _json(value, indent=None))

    def progress(self, text: str) -> None:
        """Tell a person who waits what goes on."""
        if self.shows_progress:
            self._write(self._err, visible(text))

    def warn(self, text: str) -> None:
        """Say what the reader should know although the command goes on."""
        if self.as_json:
            self._warnings.append(text)
        if self._err.isatty() or not self.as_json:
            self._write(self._err, visible(f"warning: {text}"))

    def error(self, text: str, code: int) -> None:
        """Say why the command ends with this exit code."""
        if self.as_json:
            self.document({"error": text, "exit": code})
        if self._err.isatty() or not self.as_json:
            self._write(self._err, visible(f"error: {text}"))

    def console(self, *, on_stdout: bool = False) -> "Console":
        """Return a rich console: on stderr for progress, on stdout for a person's result.

        It is silent when a parser reads stdout or nobody wants progress, and plain text
        unless its stream is a terminal.
        """
        from rich.console import Console  # noqa: PLC0415 - help must not pay for rich

        stream = self._out if on_stdout else self._err
        return Console(
            file=stream,
            quiet=self.as_json if on_stdout else not self.shows_progress,
            force_terminal=is_live(stream),
            no_color=bool(os.environ.get("NO_COLOR")),
            markup=False,
            highlight=False,
            emoji=False,
            soft_wrap=not stream.isatty(),
        )

    @property
    def is_live(self) -> bool:
        """Whether progress may be drawn over itself: a person looks at stderr."""
        return self.shows_progress and is_live(self._err)

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        stream.write(f"{text}\n")
        stream.flush()


def is_live(stream: IO[str]) -> bool:
    """Return whether a stream is a terminal that understands escape sequences."""
    return stream.isatty() and os.environ.get("TERM", "dumb") not in {"", "dumb"}


def open_streams() -> tuple[TextIO, TextIO]:
    """Return stdout and stderr so that no text crashes them; a closed one swallows all."""
    streams: list[TextIO] = []
    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            streams.append(open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for the process's life
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
        streams.append(stream)
    return streams[0], streams[1]


def with_output(command: Callable[..., None]) -> Callable[..., None]:
    """Give a click command the options `--json` and `--quiet`, and its first argument."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
    @click.option("--quiet", is_flag=True, help="No progress on stderr.")
    @functools.wraps(command)
    def wrapped(*, as_json: bool, quiet: bool, **arguments: object) -> None:
        out, err = open_streams()
        command(Output(as_json=as_json, quiet=quiet, out=out, err=err), **arguments)

    return wrapped


def _json(value: object, *, indent: int | None) -> str:
    return json.dumps(value, default=_builtins, indent=indent, allow_nan=False)


def _builtins(value: object) -> object:
    import msgspec  # noqa: PLC0415 - most documents hold no Struct

    # Not to_builtins, which refuses a msgspec.Raw: the contract of an assignment is one.
    return json.loads(msgspec.json.encode(value))
