"""The one place where foreign text is escaped, shortened and joined into reasons.

What a candidate, a build or a check printed reaches the ledger, a terminal and other
agents. Here it becomes text without control characters, with a length that is known.
Source: the reference page "Kit manifest", Outcomes; kit requirements D29 to D35.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from thermite.schema.stage import LimitName

RUN_BUDGET: Final = 2000
"""Characters kept of a run's reason, and of one failed cell in a goal report."""
VERDICT_BUDGET: Final = 4000
"""Characters kept of a verdict's joined reasons."""
BRIEF_BUDGET: Final = 1200
"""Characters kept of a verdict's reasons in a worker's brief."""
GOAL_BUDGET: Final = 600
"""Characters kept of a goal's reasons in the report that workers and planner get."""
LOG_BUDGET: Final = 1500
"""Characters kept of a build's log: its end, without a mark."""

# A terminal obeys C0, DEL and C1; bidi marks turn a line around; U+2028 and U+2029 end one.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def escape(text: str) -> str:
    r"""Return the text with everything that a terminal obeys made visible, e.g. `\x1b`.

    Line feeds and tabs stay. Doing it twice changes nothing more.
    """
    return _UNSAFE.sub(_visible, text)


def printed(raw: bytes) -> str:
    """Return a stage's output as text: UTF-8, bad bytes as U+FFFD, the end trimmed (D35)."""
    return escape(raw.decode("utf-8", "replace").rstrip())


def shorten(text: str, budget: int) -> str:
    """Return the text, or its first quarter and last three quarters around one `…`.

    The budget counts kept characters (code points), the mark is extra, so that doing it
    twice changes nothing more (D29, D30).
    """
    if len(text) <= budget:
        return text
    head = budget // 4
    return f"{text[:head]}…{text[len(text) - (budget - head) :]}"


def join(reasons: Iterable[str], budget: int) -> str:
    """Return reasons joined with `; `, kept within the budget as one text (D31, D32)."""
    return shorten("; ".join(reasons), budget)


def joined_reasons(reasons: Sequence[str], budget: int) -> list[str]:
    """Return the reasons as they are, or as one shortened text when they are too long."""
    whole = "; ".join(reasons)
    return list(reasons) if len(whole) <= budget else [shorten(whole, budget)]


def run_killed(limit: LimitName) -> str:
    """Return the reason of a run that was ended for a limit."""
    return f"killed: {limit}"


def run_exited(exit_code: int, stderr: bytes) -> str:
    """Return the reason of a run that exited with an error; the code as a shell gives it."""
    return _run(f"exit {exit_code}: {printed(stderr)}")


def run_outputs_refused(problems: Iterable[str]) -> str:
    """Return the reason of a run whose outputs were refused."""
    return _run(f"outputs refused: {escape('; '.join(problems))}")


def implausible(problems: Iterable[str]) -> str:
    """Return the reason of a run whose metric values the driver refuses."""
    return _run(f"implausible: {escape('; '.join(problems))}")


def check_failed(reasons: Sequence[str]) -> str:
    """Return the reason of a run that the check fails, in the check's own words."""
    return _run(escape("; ".join(reasons)) if reasons else "check failed")


def no_result(exit_code: int, stderr: bytes) -> str:
    """Return the reason of a run whose check printed no result line."""
    return _run(f"check produced no result (exit {exit_code}): {printed(stderr)}")


def value_missing(field: str, got: str) -> str:
    """Return the reason of a run whose check printed no usable number for a metric.

    Args:
        got: the value as JSON text, or `nothing` (D37).
    """
    return _run(escape(f"the check reported no {field} above zero (got {got})"))


def build_failed(exit_code: int, log: bytes) -> str:
    """Return the reason of a build that exited with an error."""
    return _build(f"build failed (exit {exit_code})", log)


def build_outputs_missing(paths: Iterable[str], log: bytes) -> str:
    """Return the reason of a build that did not make its declared outputs."""
    return _build(f"build outputs missing: {escape(', '.join(paths))}", log)


def build_killed(limit: LimitName, log: bytes) -> str:
    """Return the reason of a build that was ended for a limit."""
    return _build(f"build killed ({limit})", log)


def build_outputs_refused(problems: Iterable[str], log: bytes) -> str:
    """Return the reason of a build whose outputs were refused."""
    return _build(f"build outputs refused: {escape('; '.join(problems))}", log)


def source_refused(problems: Iterable[str]) -> str:
    """Return the reason of a source tree that is not built at all."""
    return _build(f"source refused: {escape('; '.join(problems))}", b"")


def _run(text: str) -> str:
    return shorten(text.rstrip(), RUN_BUDGET)


def _build(what: str, log: bytes) -> str:
    # Between the reason and its log one line end; nothing when the log is empty (D33).
    tail = printed(log)[-LOG_BUDGET:]
    head = shorten(f"build: {what}", VERDICT_BUDGET - LOG_BUDGET - 2)
    return f"{head}\n{tail}" if tail else head


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - one byte
