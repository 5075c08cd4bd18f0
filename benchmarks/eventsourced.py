"""Append and replay beside the library `eventsourcing`, and reading beside pydantic.

Both come with `pip install '.[bench]'` and are no part of Thermite; without them nothing is
measured here, and that is said. The same facts are written by both sides: ours as events of a
ledger with everything on, theirs as events of one aggregate in its own SQLite file with its own
settings (WAL, one sync a commit, as ours). Ratios are of processor time for an event, and the
two take turns. `eventsourced.py [FOLDER]`
"""

import importlib
import sqlite3
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial, reduce
from operator import or_
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.append import (
    BODIES,
    ROUNDS_OF_NINE,
    Row,
    campaign_event,
    now,
    opened,
    refusal,
    replay,
    used,
)
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.ledger.encode import decode
from thermite.schema.event import ENVELOPES, PAYLOADS, TAG_OF, Event

EVENTS: Final = 4000
"""Events of their aggregate, which takes as long to replay as a hundred thousand of ours."""
SINGLE: Final = 1000
TOGETHER: Final = 1000
LISTS: Final = 4
"""Commits of a round, of one event and of a thousand: SQLite copies its log into the file at each
thousand pages, and a round is long enough that either side pays for that in most of them."""


class Theirs:
    """One aggregate that counts what is recorded, in an application on a SQLite file."""

    def __init__(self, path: Path) -> None:
        domain = importlib.import_module("eventsourcing.domain")
        application = importlib.import_module("eventsourcing.application")
        environment = {"PERSISTENCE_MODULE": "eventsourcing.sqlite", "SQLITE_DBNAME": str(path)}
        self._app = application.Application(environment)
        self.recorder: Any = self._app.recorder
        self.mapper: Any = self._app.mapper
        self.rig = _aggregate(domain)()
        self._app.save(self.rig)

    def save(self, events: Sequence[dict[str, Any]]) -> None:
        """Record facts in one transaction, as its users do."""
        for event in events:
            self.rig.record(**event)
        self._app.save(self.rig)

    def stored(self, events: Sequence[Event]) -> list[Any]:
        """Return facts in the form in which its recorder takes them, and record nothing."""
        for event in events:
            self.rig.record(**facts_of(event))
        return [self.mapper.to_stored_event(one) for one in self.rig.collect_events()]

    def read(self) -> object:
        """Replay the aggregate."""
        return self._app.repository.get(self.rig.id)

    def rows(self) -> Any:  # noqa: ANN401 (a type of theirs)
        """Return its events as they are stored."""
        return self.recorder.select_events(self.rig.id)


@cache
def _aggregate(domain: Any) -> Any:  # noqa: ANN401 (a module that may not be there)
    def __init__(self: Any) -> None:  # noqa: ANN401, N807 (an aggregate's)
        self.count, self.last = 0, ""

    def record(  # noqa: PLR0913 (an event's fields)
        self: Any,  # noqa: ANN401 (an aggregate)
        *,
        kind: str,  # noqa: ARG001 (recorded)
        fact: str,
        assignment: str | None,  # noqa: ARG001
        actor: str,  # noqa: ARG001
        at: str,  # noqa: ARG001
        boot: str,  # noqa: ARG001
        mono_ns: int,  # noqa: ARG001
        cause: str | None,  # noqa: ARG001
        command: str | None,  # noqa: ARG001
        data: dict[str, Any],  # noqa: ARG001
    ) -> None:
        self.count += 1
        self.last = fact

    members = {"__init__": __init__, "record": domain.event("Recorded")(record)}
    return types.new_class("Rig", (domain.Aggregate,), {}, lambda names: names.update(members))


def facts_of(event: Event) -> dict[str, Any]:
    """Return what an event of ours says, for theirs."""
    return {
        "kind": TAG_OF[type(event.data)],
        "fact": event.id,
        "assignment": event.assignment,
        "actor": event.actor,
        "at": event.at,
        "boot": event.boot,
        "mono_ns": event.mono_ns,
        "cause": event.cause,
        "command": event.command,
        "data": msgspec.to_builtins(event.data),
    }


def appended(folder: Path) -> Iterator[Row]:
    """Ours beside `app.save`, and beside its recorder alone, which neither encodes nor hashes."""
    key = SigningKey.generate()
    theirs, alone = Theirs(folder / "saved.db"), Theirs(folder / "recorded.db")
    with Ledger.create(folder / "ours.db", opened(key), key, now=now) as ledger:
        for count, group in ((SINGLE, 1), (LISTS, TOGETHER)):
            ratios = []
            for turn in range(ROUNDS_OF_NINE):
                lists = _lists(turn, count, group)
                facts = [[facts_of(event) for event in one] for one in lists]
                ratios.append(used(_each(theirs.save, facts)) / used(_each(ledger.append, lists)))
            many = "1 event" if group == 1 else f"{group:,} events"
            yield Row(f"append, {many} a commit, CPU, of eventsourcing's save", 3.5, ratios)
        ratios = []
        for turn in range(ROUNDS_OF_NINE):
            lists = _lists(1000 + turn, SINGLE, 1)
            stored = [alone.stored(one) for one in lists]
            insert = used(_each(alone.recorder.insert_events, stored))
            ratios.append(insert / used(_each(ledger.append, lists)))
        yield Row("append, 1 event a commit, CPU, of eventsourcing's recorder", 1.6, ratios)


def _lists(turn: int, count: int, group: int) -> list[list[Event]]:
    first = turn * 100_000
    return [
        [campaign_event(first + at * group + one) for one in range(group)] for at in range(count)
    ]


def _each(act: Callable[[Any], object], lists: Sequence[object]) -> Callable[[], object]:
    return lambda: [act(one) for one in lists]


def replayed(folder: Path, ledger: Path, events: int) -> Iterator[Row]:
    """Ours, of a ledger with so many refused orders, beside theirs, by the event."""
    theirs = Theirs(folder / "replayed.db")
    theirs.save([facts_of(refusal(at)) for at in range(EVENTS)])
    ours, alone = partial(replay, ledger), partial(decode_alone, ledger)
    tuned, mapped = partial(_tuned, theirs), partial(_mapped, theirs)
    validated = partial(_validated, ledger, _pydantic())
    rows: dict[str, tuple[float, Callable[[], object], Callable[[], object]]] = {
        "replay, CPU, of eventsourcing's repository.get": (16, ours, theirs.read),
        "replay, CPU, of eventsourcing's mapper": (5, ours, mapped),
        "decode, CPU, of eventsourcing's select_events and msgspec": (2.3, alone, tuned),
        "replay, CPU, of pydantic without applying": (2.2, ours, validated),
    }
    ratios: dict[str, list[float]] = {goal: [] for goal in rows}
    for _ in range(ROUNDS_OF_NINE):
        costs: dict[object, float] = {act: used(act) / events for act in (ours, alone)}
        for goal, (_, act, peer) in rows.items():
            ratios[goal].append(used(peer) / EVENTS / costs[act])
    for goal, (floor, _, _) in rows.items():
        yield Row(f"{goal}, {events:,} events", floor, ratios[goal])


def decode_alone(path: Path) -> None:
    """Decode every event of a ledger and do nothing with it."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
        for (body,) in file.execute(BODIES):
            decode(body)


def _tuned(theirs: Theirs) -> None:
    decoder = msgspec.json.Decoder(dict[str, Any])
    for one in theirs.rows():
        decoder.decode(one.state)


def _mapped(theirs: Theirs) -> None:
    for one in theirs.rows():
        theirs.mapper.to_domain_event(one)


def _validated(path: Path, adapter: Any) -> None:  # noqa: ANN401 (a module that may not be there)
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
        for (body,) in file.execute(f"{BODIES} LIMIT {EVENTS} OFFSET 1"):
            adapter.validate_json(body)


def _pydantic() -> Any:  # noqa: ANN401 (a module that may not be there)
    """Return a validator of two envelopes, told apart by their type as ours are."""
    pydantic = importlib.import_module("pydantic")
    models = [_model(pydantic, tag) for tag in ("command_refused", "steered")]
    union = reduce(or_, models)
    return pydantic.TypeAdapter(Annotated[union, pydantic.Field(discriminator="type")])


def _model(pydantic: Any, tag: str) -> Any:  # noqa: ANN401 (a module that may not be there)
    def fields(struct: type[msgspec.Struct]) -> dict[str, Any]:
        return {
            one.encode_name: (one.type, ... if one.required else None)
            for one in msgspec.structs.fields(struct)
        }

    data = pydantic.create_model(f"{tag}_data", **fields(PAYLOADS[tag]))
    envelope = fields(ENVELOPES[tag]) | {"type": (Literal[tag], ...), "data": (data, ...)}
    return pydantic.create_model(tag, **envelope)


def missing() -> str | None:
    """Return why nothing can be measured here, or None."""
    for name in ("eventsourcing.application", "pydantic"):
        try:
            importlib.import_module(name)
        except ImportError:
            package = name.partition(".")[0]
            return f"not measured: {package} is not installed (pip install '.[bench]')"
    return None


def main() -> None:
    """Print the rows, of a ledger of 20,000 events."""
    parent = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    why = missing()
    if why is not None:
        print(why)
        return
    with tempfile.TemporaryDirectory(dir=parent, prefix="eventsourced-") as name:
        folder, key = Path(name), SigningKey.generate()
        with Ledger.create(folder / "story.db", opened(key), key, now=now) as ledger:
            for first in range(0, 20_000, 1000):
                ledger.append([refusal(first + at) for at in range(1000)])
        for row in (*appended(folder), *replayed(folder, folder / "story.db", 20_001)):
            print(row.line(), flush=True)


if __name__ == "__main__":
    main()
