"""Refusals, bounded: anybody may write into the inbox, and nobody may fill the ledger.

At most 60 events a minute; what comes beyond is counted and told as one event once the
minute is over. Refused files keep a reason beside them either way.
Source: ledger and signing, 3.9 "Floods".
"""

from collections import deque
from typing import Final

from thermite.schema.event import RefusalsSuppressed

MOST_A_MINUTE: Final = 60
MINUTE_S: Final = 60.0

REMEDIES: Final[dict[str, str]] = {
    "not_a_plain_file": "drop a copy of the file itself, with thermite inbox drop",
    "unreadable": "drop the file with mode 0644, with thermite inbox drop",
    "too_large": "send large things as bundles and shorten the contract",
    "malformed_envelope": "sign the command again and send the whole file",
    "unknown_payload_type": "send a command file, or upgrade Thermite on the rig",
    "no_trusted_signature": "sign with a key that this rig trusts (thermite key list)",
    "malformed_payload": "sign the command again with a Thermite of the rig's version",
    "malformed_body": "put the body right and sign the command again",
    "wrong_rig": "sign it again with --rig and the name of this rig",
    "wrong_ledger": "run thermite rig add once more and sign the command again",
    "expired": "sign the command again",
    "bundle_missing": "drop the bundle, then the command again",
    "bundle_hash": "drop the bundle that was signed, or sign the command again",
    "bundle_bad": "make the bundle anew from a full clone, and sign the command again",
}
"""What to do, where that does not depend on the values; other texts say it themselves."""


class Floodgate:
    """Lets so many refusals a minute into the ledger and counts the others."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()
        self._held_back = 0
        self._since: str | None = None
        self._first_s = 0.0

    def admit(self, now_s: float, stamp: str) -> bool:
        """Return whether one more refusal may be an event; else it is counted.

        Args:
            now_s: the monotonic clock, s; stamp: the time, RFC 3339.
        """
        while self._times and now_s - self._times[0] >= MINUTE_S:
            self._times.popleft()
        if len(self._times) < MOST_A_MINUTE:
            self._times.append(now_s)
            return True
        if self._since is None:
            self._since, self._first_s = stamp, now_s
        self._held_back += 1
        return False

    def told(self, now_s: float, *, ending: bool = False) -> RefusalsSuppressed | None:
        """Return the event for what was held back, once its minute is over or the harness ends."""
        if self._since is None or not (ending or now_s - self._first_s >= MINUTE_S):
            return None
        event = RefusalsSuppressed(count=self._held_back, since=self._since)
        self._held_back, self._since = 0, None
        return event


def remedy(code: str, message: str) -> str:
    """Return what to do about a refusal."""
    return REMEDIES.get(code) or message.rpartition(": ")[2]
