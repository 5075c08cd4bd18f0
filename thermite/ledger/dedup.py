"""What may happen only once, and the key by which a second time is noticed.

Source: ledger and signing, 3.3. The key is a pure function of the event, so that an audit
can derive it again; a local job's `local_job` has none, since the page names none.
"""

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
    about = event.assignment or ""
    key: str | None = None
    match event.data:
        case CommandAccepted(issuer=issuer, id=command):
            key = f"command:{issuer}:{command}"
        case AssignmentCreated():
            key = f"assignment:{about}"
        case McpServers():
            key = f"mcp_servers:{about}"
        case Verdict(attempt=attempt, tries=tries):
            key = f"verdict:{about}:{attempt}:{tries}"
        case ChampionPromoted(attempt=attempt):
            key = f"promoted:{about}:{attempt}"
        case AssignmentEnded():
            key = f"ended:{about}"
        case _:
            pass
    return key
