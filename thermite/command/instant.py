"""Moments as text: RFC 3339 in UTC, with `Z`, and nothing that could be read in two ways."""

import re
from datetime import UTC, datetime
from typing import Final

_FORM: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


def read_instant(text: str) -> datetime:
    """Return the moment that the text names, in UTC.

    Raises:
        ValueError: no RFC 3339 time in UTC; a leap second, a local time or a year of five
            digits is refused, since readers disagree on them. The text says so in words.

    Source: ledger and signing, 3.8.
    """
    if _FORM.fullmatch(text) is None:
        raise ValueError(f"{text[:40]!a} is not a time in UTC like 2026-01-31T12:00:00Z")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text[:40]!a} is not a time: {error}") from None


def write_instant(moment: datetime) -> str:
    """Return the moment as RFC 3339 in UTC, with microseconds only when there are some.

    Raises:
        RuntimeError: a moment without a time zone; a bug of the caller.
    """
    if moment.tzinfo is None:
        raise RuntimeError("a moment without a time zone names no moment")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
