"""Every event that could not be replayed is refused before it is written, and by name."""

import math

import msgspec
import pytest
from msgspec import inspect

from benchmarks.append import run_event
from tests.ledger.facts import Facts
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.encode import (
    _BOUNDED,
    MOST_BODY_BYTES,
    MOST_LEVELS,
    decode,
    encode,
    encode_all,
)
from thermite.schema.contract import RepoAt
from thermite.schema.event import (
    ENVELOPES,
    MOST_MONO_NS,
    AssignmentCreated,
    JudgeStarted,
    LaneOpened,
    LedgerOpened,
    RigSelftest,
    Run,
    Steered,
)
from thermite.schema.strict import MOST_WHOLE

HUGE = 2**53


def lane(**options: object) -> LaneOpened:
    return LaneOpened(lane=0, backend="replay", options=options, model=None, strategy="rules")


def deep(levels: int) -> list[object]:
    nested: list[object] = []
    for _ in range(levels):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(lane(x=math.nan), "data.options.x is nan and comes back as None", id="NaN"),
        pytest.param(lane(x=[1, math.inf]), "data.options.x.1 is inf", id="infinity in a list"),
        pytest.param(lane(x=-math.inf), "data.options.x is -inf", id="minus infinity"),
        pytest.param(lane(x=HUGE), f"data.options.x {HUGE} is beyond", id="2^53"),
        pytest.param(lane(x=[{"y": -HUGE}]), f"data.options.x[0].y -{HUGE}", id="minus 2^53"),
        pytest.param(lane(x=2**63), f"data.options.x {2**63}", id="2^63"),
        pytest.param(lane(x=2**64), f"data.options.x {2**64}", id="2^64"),
        pytest.param(lane(x="\ud800"), "has no JSON form", id="half a surrogate pair"),
        pytest.param(
            lane(x={1: 2}), "data.options.x is {1: 2} and comes", id="a key that is no text"
        ),
        pytest.param(lane(x=(1, 2)), "data.options.x is (1, 2)", id="a tuple where anything goes"),
        pytest.param(lane(x=object()), "has no JSON form", id="no JSON value"),
        pytest.param(lane(x=deep(100_000)), "nested too deeply", id="nested beyond any stack"),
        pytest.param(lane(x=deep(5000)), "nested", id="nested beyond some stacks"),
        pytest.param(lane(x=deep(29)), "nested more than 32 levels deep", id="nested"),
        pytest.param(Steered(text="x" * MOST_BODY_BYTES, lane=None), "at most 262144", id="long"),
        pytest.param(Steered(text=7, lane=None), "would not come back", id="wrong type"),  # type: ignore[arg-type]
    ],
)
def test_what_can_not_be_replayed_is_refused(
    data: LaneOpened | Steered, words: str, facts: Facts, ledger: Ledger
) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.append([facts.steered(), facts.event(data)])
    assert words in str(caught.value)
    assert ledger.size == 1


def test_the_deepest_contract_fits_into_an_event(facts: Facts, ledger: Ledger) -> None:
    ledger.append([facts.event(lane(x=deep(28), y=[[]] * 40))])
    assert ledger.size == 2


def test_a_field_that_may_be_null_does_not_swallow_nan(facts: Facts, ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="gain is nan and comes back as None"):
        ledger.append([facts.verdict(gain=math.nan)])


def test_raw_json_is_looked_into(facts: Facts) -> None:
    created = facts.created().data
    for raw in (b"nope", b'{"a":1},"kit":null', b'{"a": 9007199254740993}', b"1 2"):
        data = msgspec.structs.replace(created, contract=msgspec.Raw(raw))
        assert isinstance(data, AssignmentCreated)
        with pytest.raises(LedgerError):
            encode(facts.event(data))


@pytest.mark.parametrize(
    "data",
    [
        lane(x=HUGE - 1, y=-(HUGE - 1), z=1.5e300, big=12345678901234567.0),
        lane(x="9007199254740993", y="a\x00b\u202e\u2028", z=[None, True, {}]),
        lane(mono_ns=5, x=-0.0),
    ],
)
def test_what_json_keeps_is_kept(data: LaneOpened, facts: Facts) -> None:
    event = facts.event(data)
    assert decode(encode(event).body) == event


def test_a_machine_may_run_for_years(facts: Facts) -> None:
    event = facts.event(lane(), mono_ns=10 * 365 * 86_400 * 10**9)
    assert decode(encode(event).body) == event
    with pytest.raises(LedgerError, match="mono_ns"):
        encode(facts.event(lane(), mono_ns=2**63))
    with pytest.raises(LedgerError, match=r"data\.options\.mono_ns"):
        encode(facts.event(lane(mono_ns=HUGE), mono_ns=HUGE))


def levels(kind: inspect.Type, name: str = "") -> int:
    """How deep a value of a type may nest; fails where it may hold a number without bounds."""
    match kind:
        case inspect.StructType(fields=fields):
            return 1 + max(levels(one.type, one.name) for one in fields)
        case inspect.UnionType(types=kinds):
            return max(levels(one, name) for one in kinds)
        case inspect.ListType(item_type=item):
            return 1 + levels(item, name)
        case inspect.DictType(key_type=inspect.StrType() | inspect.LiteralType(), value_type=item):
            return 1 + levels(item, name)
        case inspect.TupleType(item_types=items):
            return 1 + max(levels(one, name) for one in items)
        case inspect.IntType(ge=least, le=most) if name == "mono_ns":
            assert (least, most) == (0, MOST_MONO_NS)
        case inspect.IntType(ge=least, le=most) | inspect.FloatType(ge=least, le=most):
            assert least is not None
            assert most is not None
            assert -MOST_WHOLE <= least <= most <= MOST_WHOLE, name
        case inspect.StrType() | inspect.BoolType() | inspect.NoneType():
            pass
        case inspect.LiteralType(values=values):
            assert all(isinstance(value, str) for value in values)
        case _:
            raise AssertionError(f"{name} may hold anything: {kind}")
    return 0


@pytest.mark.parametrize("tag", sorted(_BOUNDED))
def test_a_type_whose_bytes_are_not_looked_through_can_hold_nothing_that_readers_lose(
    tag: str,
) -> None:
    assert levels(inspect.type_info(ENVELOPES[tag])) <= MOST_LEVELS


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        pytest.param("record", "t_ns", HUGE, id="2^53"),
        pytest.param("record", "t_ns", -HUGE, id="minus 2^53"),
        pytest.param("record", "cpus", [1, 2**64], id="2^64 in a list"),
        pytest.param("isolation", "uid", 10**30, id="10^30"),
        pytest.param(None, "tries", True, id="truth for a number"),
        pytest.param(None, "tries", 1.0, id="a fraction for a number"),
    ],
)
def test_a_number_that_readers_lose_is_refused_where_only_the_type_says_so(
    part: str | None, field: str, value: object
) -> None:
    event = run_event(1)
    run = event.data
    assert isinstance(run, Run)
    if part is None:
        changed = msgspec.structs.replace(run, **{field: value})
    else:
        inner = msgspec.structs.replace(getattr(run, part), **{field: value})
        changed = msgspec.structs.replace(run, **{part: inner})
    wrong = msgspec.structs.replace(event, data=changed)
    for refuse in (lambda: encode(wrong), lambda: encode_all([event] * 70 + [wrong])):
        with pytest.raises(LedgerError, match=field):
            refuse()


def test_a_whole_number_in_a_fractions_place_keeps_the_same_bounds() -> None:
    event = run_event(1)
    run = event.data
    assert isinstance(run, Run)
    assert run.isolation is not None
    assert run.isolation.proof is not None
    proof = msgspec.structs.replace(run.isolation.proof, kill_ms=HUGE)
    isolation = msgspec.structs.replace(run.isolation, proof=proof)
    wrong = msgspec.structs.replace(event, data=msgspec.structs.replace(run, isolation=isolation))
    with pytest.raises(LedgerError, match=r"data\.isolation\.proof\.kill_ms 9007199254740992"):
        encode_all([event, wrong])


def test_many_events_make_the_same_rows_as_each_alone(facts: Facts) -> None:
    events = [run_event(1), *facts.campaign()] * 12
    rows = encode_all(events)
    assert len(events) > 130
    assert [*zip(*rows, strict=True)] == [
        msgspec.structs.astuple(encode(event)) for event in events
    ]


def test_only_events_are_kept(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="RepoAt is no event"):
        ledger.append([RepoAt(repo="kit", commit="c0")])  # type: ignore[list-item]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(b"[" * 100_000, id="nested"),
        pytest.param(b'{"type":"nonsense"}', id="unknown type"),
        pytest.param(b'{"type":"steered"}', id="members missing"),
        pytest.param(b"\xff\xfe", id="no text"),
    ],
)
def test_bytes_that_are_no_event_are_a_problem_in_words(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        decode(body)


def test_every_struct_of_an_event_refuses_unknown_members(facts: Facts) -> None:
    selftest = RigSelftest(
        mode="short",
        kit=RepoAt(repo="kit", commit="c0"),
        nonce="17",
        order_seed="5e",
        blocks=[0.001],
        figures={"robust_sd": 0.01},
        grade="B",
        sees=0.02,
        biased=False,
        insensitive=None,
    )
    body = encode(facts.event(selftest)).body
    with pytest.raises(ValueError, match="unknown field `more`"):
        decode(body.replace(b'"commit":"c0"', b'"commit":"c0","more":1'))


def test_the_opening_and_the_judge_say_what_they_said(facts: Facts) -> None:
    for event in (facts.opened(), facts.judge_started()):
        assert isinstance(event.data, LedgerOpened | JudgeStarted)
        assert decode(encode(event).body) == event
