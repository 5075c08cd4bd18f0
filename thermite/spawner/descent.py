"""Who belongs to a stage without a user of its own: its tree, and what fell out of it.

A look at every process of the machine tells it for certain, and costs more than all the rest of a
sample. So each process is asked once who its parent is: who is in the tree stays in it, and who is
not never gets into it (`others`). Whom a look at all misses, because a parent ended while it went
on, the next sample finds. What left its stage between two samples, with a session of
its own, is nobody's either way.
Source: proc(5).
"""

from collections.abc import Collection, Iterator

from . import scan
from .others import Others


class Descent:
    """Finds the processes of one stage, again and again."""

    def __init__(self, main: int, spawner: int, init: int | None) -> None:
        """main: the stage's first; spawner: its parent; init: of its own pid namespace, if any."""
        self._main, self._spawner, self._init = main, spawner, init
        self._others = Others()
        self._once_below: dict[int, int] = {}

    def members(self, known: Collection[int]) -> set[int]:
        """Return them, without the init; some may have ended.

        known: those of the last answer that are still the same processes, as far as one knows.
        """
        numbers = set(scan.pids())
        others = self._others.still(numbers)
        found = set[int]() if self._others.asks_all else numbers.intersection(known)
        table = scan.table_of(numbers - found - others)
        found |= scan.below([*found, *self._roots(table)], table)
        self._others.add(strangers(table, found, others))
        self._once_below |= {pid: table[pid].started for pid in found & table.keys()}
        for pid in self._once_below.keys() - numbers:
            del self._once_below[pid]
        return found - {self._init}

    def _roots(self, table: dict[int, scan.Seen]) -> Iterator[int]:
        """Yield who belongs to the stage whoever its parent is; its init buries its own orphans."""
        yield self._main
        if self._init is not None:
            yield self._init
            return
        for one in table.values():
            was_below = self._once_below.get(one.pid) == one.started
            if one.parent == self._spawner and (one.session == self._main or was_below):
                yield one.pid


def strangers(
    table: dict[int, scan.Seen], members: Collection[int], others: Collection[int]
) -> set[int]:
    """Return who of a table is no member and never gets to be one.

    A parent that ended since all were listed may have been a member: its child, and all below,
    have to be asked again.
    """
    placed = {0, *table, *members, *others}
    lost = [one.pid for one in table.values() if one.parent not in placed]
    return table.keys() - members - scan.below(lost, table)
