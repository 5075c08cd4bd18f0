"""Collect findings, and keep the list short enough to read."""

from collections import Counter

from thermite.schema.audit import MOST_PER_CODE, Finding


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


def shown(raw: object) -> str:
    """Return a value of a doctored file as text that can be printed: hex, or shortened."""
    return raw.hex() if isinstance(raw, bytes) and len(raw) <= 32 else f"{raw!r:.80}"  # noqa: PLR2004 (a hash)
