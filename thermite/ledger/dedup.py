"""What may happen only once, and the key by which a second time is noticed.

Source: ledger and signing, 3.3. The key is a pure function of the event, so that an audit
can derive it again; a local job's `local_job` has none, since the page names none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from thermite.schema.event import (
    AssignmentCreated,
    AssignmentEnded,
    ChampionPromoted,
    CommandAccepted,
    Event,
    McpServers,
    Verdict,
)


def dedup_key(event: Event) -> str | None:
    """Return the key of an event of which a ledger holds one, or None."""
    key = _KEYS.get(type(event.data))
    return None if key is None else key(event.assignment or "", event.data)


def dedup_keys(events: Sequence[Event]) -> list[str | None]:
    """Return the key of each event, as `dedup_key` does: of most types none has one."""
    if _KEYS.keys().isdisjoint([type(event.data) for event in events]):
        return [None] * len(events)
    return [*map(dedup_key, events)]


_KEYS: Final[Mapping[type, Callable[[str, Any], str]]] = {
    CommandAccepted: lambda _, data: f"command:{data.issuer}:{data.id}",
    AssignmentCreated: lambda about, _: f"assignment:{about}",
    McpServers: lambda about, _: f"mcp_servers:{about}",
    Verdict: lambda about, data: f"verdict:{about}:{data.attempt}:{data.tries}",
    ChampionPromoted: lambda about, data: f"promoted:{about}:{data.attempt}",
    AssignmentEnded: lambda about, _: f"ended:{about}",
}
"""Of each type that has a key, how it is made from the assignment and the payload."""
