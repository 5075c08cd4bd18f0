"""MCP servers of an order -> what their headers carry, for a campaign's gateway alone.

The values leave this process in one sealed memory file, which the harness hands to the gateway
and never reads; words about what is missing hold names and places only.
Source: contract, Commands (`providers`); agents and control, A1 and A9.
"""

import msgspec

from supervisor.access import Accesses, Started
from supervisor.address import FetchError
from thermite.schema.access import SecretHeaders
from thermite.schema.command import McpProvider
from thermite.schema.offer import Unlock, Unlocked, short


def unlock(accesses: Accesses, wanted: Unlock, started: Started) -> tuple[Unlocked, bytes]:
    """Return what the harness is told, and what goes into the memory file beside it.

    Args:
        started: told of a process that was started and should be ended with the rig.
    """
    problems: dict[str, str] = {}
    found: dict[str, SecretHeaders] = {}
    for server in wanted.servers:
        try:
            found[server.name] = _headers(accesses, server, started)
        except FetchError as error:
            problems[server.name] = short(str(error))
    return Unlocked(n=wanted.n, problems=problems), msgspec.json.encode(found)


def _headers(accesses: Accesses, server: McpProvider, started: Started) -> SecretHeaders:
    """Raises FetchError for the first header that can't be had, naming it."""
    place = server.url.partition("?")[0]  # an access is for a place, whatever is asked there
    headers: dict[str, str] = {}
    trusted: list[str] = []
    for header, name in server.headers.items():
        try:
            access, headers[header] = accesses.opened(name, place, started)
        except FetchError as error:
            raise FetchError(f"header {header[:80]}: {error}") from None
        if headers[header] != headers[header].strip():
            raise FetchError(
                f"header {header[:80]}: the secret of access {name} begins or ends with a blank,"
                " which no header carries: set it again without"
            )
        if access.trusted is not None:
            trusted.append(access.trusted)
    return SecretHeaders(headers=headers, trusted="\n".join(trusted) or None)
