"""Collect findings, and keep the list short enough to read."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

from thermite.schema.audit import MOST_PER_CODE, Finding

_CAUSES: Final = frozenset({"body_hash", "seq_gap"})
"""What a changed, deleted or moved event shows as, at its place."""
_CONSEQUENCES: Final = frozenset(
    {"checkpoint_root", "checkpoint_head", "checkpoint_gap", "stale_head", "unsigned_tail"}
)
"""What follows from it at every checkpoint above, and at the end of the ledger."""


class Findings:
    """Findings in the order in which they were made; at most 100 of a code are listed."""

    def __init__(self) -> None:
        self.listed: list[Finding] = []
        self._count: Counter[str] = Counter()

    def add(self, finding: Finding) -> None:
        """Take one finding."""
        self._count[finding.code] += 1
        if self._count[finding.code] <= MOST_PER_CODE:
            self.listed.append(finding)

    @contextmanager
    def by_event(self) -> Iterator[None]:
        """Put what is found meanwhile in the order of its events."""
        before = len(self.listed)
        yield
        if len(self.listed) > before + 1:
            self.listed[before:] = sorted(self.listed[before:], key=lambda one: one.seq or 0)

    def explained(self) -> list[Finding]:
        """Return what is listed, causes first, and say of consequences what they follow from.

        A checkpoint that does not fit has no other cause than the first changed event below
        it; and where checkpoints do not fit, the newest valid one is old.
        """
        causes = [one for one in self.listed if one.code in _CAUSES]
        others = [one for one in self.listed if one.code not in _CAUSES]
        if not causes or "opening_unreadable" in self:
            return self.listed
        first = causes[0].seq or 0
        place = f"{causes[0].code} at event {first}"
        spoilt = any(one.code in {"checkpoint_root", "checkpoint_head"} for one in others)
        return causes + [
            msgspec.structs.replace(one, follows=place) if _follows(one, first, spoilt) else one
            for one in others
        ]

    @property
    def unlisted(self) -> dict[str, int]:
        """How many findings of each code are not listed."""
        return {
            code: count - MOST_PER_CODE
            for code, count in self._count.items()
            if count > MOST_PER_CODE
        }

    def __contains__(self, code: str) -> bool:
        return self._count[code] > 0


def _follows(one: Finding, first: int, spoilt: bool) -> bool:  # noqa: FBT001 (of this file)
    above = one.size is not None and one.size >= first
    return one.code in _CONSEQUENCES and (above or spoilt)


def shown(raw: object) -> str:
    """Return a value of a doctored file as text that can be printed: hex, or shortened."""
    return raw.hex() if isinstance(raw, bytes) and len(raw) <= 32 else f"{raw!r:.80}"  # noqa: PLR2004 (a hash)
