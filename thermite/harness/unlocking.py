"""What MCP servers' headers carry, on its way from the supervisor to a gateway.

The harness asks by names and passes on a sealed memory file that it never reads: no secret is
ever in this process, so none can come out of it into the ledger, a log or an exception.
Source: agents and control, A1 and A9.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from thermite.errors import CommandError, InfrastructureError
from thermite.schema.command import McpProvider
from thermite.schema.offer import Unlock, Unlocked

ANSWER_S: Final = 120.0
"""How long an answer is waited for: a few programs that print secrets, 30 s each (our figure)."""
LOOK_S: Final = 0.5
"""How often somebody who waits looks whether it still must (our figure)."""


class Letter(NamedTuple):
    """A memory file for a gateway, None for no secret; problems: by server, in words."""

    descriptor: int | None
    problems: Mapping[str, str]


@dataclass
class Unlocking:
    """Asks the supervisor, once a door has said how. Safe to use from all threads."""

    _say: Callable[[Unlock], None] | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _last_n: int = 0
    _open: dict[int, Letter | None] = field(default_factory=dict)

    def connect(self, say: Callable[[Unlock], None]) -> None:
        """Take the way to the supervisor."""
        self._say = say

    def answered(self, message: Unlocked, descriptor: int) -> None:
        """Take an answer; one that nobody waits for is closed unread."""
        with self._changed:
            if message.n in self._open and self._open[message.n] is None:
                self._open[message.n] = Letter(descriptor, message.problems)
                self._changed.notify_all()
                return
        os.close(descriptor)

    @contextmanager
    def letter(
        self, servers: Sequence[McpProvider], must_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Letter]:
        """Lend what these servers are sent; those without a header need nothing.

        Raises:
            InfrastructureError: the supervisor does not answer.
        """
        wanted = [one for one in servers if one.headers]
        if not wanted:
            yield Letter(None, {})
            return
        found = self._asked(wanted, must_stop)
        try:
            yield found
        finally:
            if found.descriptor is not None:
                os.close(found.descriptor)

    def check(self, servers: Sequence[McpProvider]) -> None:
        """Refuse servers whose secrets this rig can't send.

        Raises:
            CommandError: `mcp_servers`, naming what to type on the rig.
            InfrastructureError: as `letter`.
        """
        with self.letter(servers) as letter:
            for name, problem in letter.problems.items():
                raise CommandError("mcp_servers", f"MCP server {name}: {problem}")

    def _asked(self, servers: Sequence[McpProvider], must_stop: Callable[[], bool]) -> Letter:
        if self._say is None:
            raise InfrastructureError("nobody here keeps secrets for MCP servers")
        with self._changed:
            self._last_n += 1
            n = self._last_n
            self._open[n] = None
            self._say(Unlock(n=n, servers=list(servers)))
            waited = 0.0
            while self._open[n] is None and waited < ANSWER_S and not must_stop():
                self._changed.wait(LOOK_S)
                waited += LOOK_S
            found = self._open.pop(n)
        if found is None:
            raise InfrastructureError(
                "the supervisor does not say what MCP servers are sent: it is asked again"
            )
        return found
