"""Networks with nothing in them, handed from a stage that is gone to one that is to come.

A network namespace costs the kernel more to make, and far more to take apart, than all else that a
stage gets. Most stages can't use theirs at all: the filter lets them make unix sockets only, and
they have no capability over it, so that links, addresses, routes, settings and counters stay as
they were made. What such a stage can leave in there is a unix socket on its way through another
one. So a network goes on to a next stage only when all this holds:

- the filter of both leaves nothing but unix sockets, and neither was given a gateway;
- the first is proven gone, and the network is no other stage's meanwhile;
- whoever joins it sees in the kernel's own list that there is no socket in it.

Else the stage has a new one. No stage's user namespace is such a network's owner, but root's or
the nursery's (`own_root.own_networks`). Source: isolation, 4.1, Network; network_namespaces(7).
"""

import os
from typing import Final

from . import namespaces

_OWN: Final = "/proc/self/ns/net"
_SOCKETS: Final = "/proc/self/net/unix"
_MOST_READ: Final = 4096


class Networks:
    """The spawner's: descriptors of those that are nobody's now."""

    def __init__(self) -> None:
        self._free: list[int] = []

    def take(self) -> list[int]:
        """Return the descriptor of one, if there is any; it is the caller's now."""
        return [self._free.pop()] if self._free else []

    def keep(self, network: int) -> None:
        """Take back that of one whose stage is proven gone."""
        self._free.append(network)

    def close(self) -> None:
        """Give all of them up."""
        while self._free:
            os.close(self._free.pop())


def joined(kept: int | None) -> int | None:
    """Join an empty network, `kept` or a new one, and return its descriptor.

    None where that can't be had: whoever calls is to make one in another way.
    """
    try:
        if kept is not None and _is_joined(kept) and is_empty():
            return kept
        namespaces.unshare(namespaces.NEW_NETWORK)
        return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _is_joined(kept: int) -> bool:
    """Join a network; one that an earlier nursery owned can't be."""
    try:
        namespaces.join(kept, namespaces.NEW_NETWORK)
    except PermissionError:
        return False
    return True


def is_empty() -> bool:
    """Return whether there is no socket in this process's network: the list is its heading alone.

    Unix sockets alone are listed; no others have been made in a network that is asked about.

    Raises:
        OSError: the list can't be read.
    """
    fd = os.open(_SOCKETS, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _MOST_READ).count(b"\n") == 1
    finally:
        os.close(fd)
