"""What happens to one attempt, from its start to its end: the payloads of its events.

Commits and trees are git's ids in hex; paths are a candidate's, from its top folder. Source:
the reference page "Contract", Events.
"""

from typing import Literal

import msgspec

from thermite.schema.strict import Strict, Whole


class AttemptStarted(Strict):
    """An attempt begins; proposal: what a restart must know, e.g. the replay entry's name."""

    attempt: Whole
    base: str
    proposal: str | None
    brief_sha256: str | None
    limits: dict[str, float | None]


class AgentFinished(Strict, omit_defaults=True):
    """The agent of an attempt is gone; transcript: SHA-256 in blobs, or None.

    partial: the transcript is what was said when a kill of the rig ended the agent.
    """

    attempt: Whole
    status: Literal["ok", "no_change", "limit", "error", "refused", "killed"]
    stop_reason: str | None
    turns: Whole | None
    transcript: str | None
    partial: bool = False


class CandidateSubmitted(Strict):
    """A candidate commit exists; paths: those that differ from its base."""

    attempt: Whole
    commit: str
    tree: str
    paths: list[str]


class CandidateRefused(Strict):
    """What an attempt left can't be a candidate."""

    attempt: Whole
    reason: str
    paths: list[str]

    def in_words(self) -> str:
        """Return the reason with the paths that are to blame."""
        return f"{self.reason}: {', '.join(self.paths)}" if self.paths else self.reason


class AttemptEnded(Strict):
    """result: the verdict, or refused, no_change, limit, killed, error."""

    attempt: Whole
    result: str


class Hold(Strict):
    """A promotion waits for a person; reasons: what the judge found, in words."""

    attempt: Whole
    reason: str
    reasons: list[str] = msgspec.field(default_factory=list)


class HoldResolved(Strict):
    """The wait is over; by: key id, or `time`."""

    attempt: Whole
    action: Literal["release", "reject", "expired"]
    by: str
