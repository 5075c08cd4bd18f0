"""The MCP gateway as its own process, with the official SDK on both sides."""

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.agent.gateway_process import (
    SERVERS,
    RunningGateway,
    agent,
    gateway,
    program,
    text,
    worker,
)
from tests.requirement import shows
from thermite.agent.gateway.calls import Calls
from thermite.agent.gateway.serve import Doors
from thermite.agent.gateway.wire import Caller, Figures, Server

ADVISORS = Caller(token="t-advisors", kind="advisors", lane=None, grants={"brain": ["secret"]})
ALL = worker(brain=None)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """One gateway whose workers have three tools, whose advisors one, whose planner none."""
    callers = (
        worker(brain=["search_code", "huge", "boom"]),
        ADVISORS,
        Caller(token="t-planner", kind="planner", lane=None, grants={}),
    )
    with gateway(tmp_path_factory.mktemp("gateway"), [program("stdio")], *callers) as one:
        yield one


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """One gateway whose workers have every tool that the server lists."""
    with gateway(tmp_path_factory.mktemp("whole"), [program("stdio")], ALL) as one:
        yield one


async def names(one: RunningGateway, token: str) -> set[str]:
    async with agent(one.port, token) as client:
        return {tool.name for tool in (await client.list_tools()).tools}


@shows("K-073", "K-075")
def test_each_caller_sees_the_tools_of_its_kind(many: RunningGateway) -> None:
    async def seen() -> list[set[str]]:
        return [await names(many, t) for t in ("t-workers", "t-advisors", "t-planner")]

    assert asyncio.run(seen()) == [
        {"brain__search_code", "brain__huge", "brain__boom"},
        {"brain__secret"},
        set(),
    ]


@shows("K-073")
def test_a_kind_without_a_list_gets_every_tool_that_the_server_lists(
    whole: RunningGateway,
) -> None:
    seen = asyncio.run(names(whole, ALL.token))
    assert len(seen) == 11
    assert {"brain__secret", "brain__slow"} <= seen


@shows("K-075")
@pytest.mark.parametrize(
    ("token", "name"),
    [
        pytest.param("t-workers", "brain__secret", id="a worker calls an advisor's tool"),
        pytest.param("t-advisors", "brain__search_code", id="an advisor calls a worker's"),
        pytest.param("t-planner", "brain__search_code", id="a planner without servers"),
        pytest.param("t-workers", "brain__nothing", id="no tool"),
        pytest.param("t-workers", "search_code", id="without its server"),
        pytest.param("t-workers", "", id="no name"),
    ],
)
def test_a_call_outside_the_grant_is_a_tool_error_and_the_next_call_works(
    many: RunningGateway, token: str, name: str
) -> None:
    before = len(many.calls)

    async def called() -> None:
        async with agent(many.port, token) as client:
            refused = await client.call_tool(name, {})
            assert refused.is_error
            assert "have no tool" in text(refused)
        async with agent(many.port, "t-workers") as client:
            found = await client.call_tool("brain__search_code", {"text": "x"})
            assert (text(found), found.is_error) == ("found x", False)

    asyncio.run(called())
    told = many.until_told(before + 2)[before:]
    assert [one.outcome for one in told] == ["refused", "ok"]
    assert told[0].token == token
    assert (told[1].server, told[1].tool) == ("brain", "search_code")


def post(one: RunningGateway, **headers: str) -> int:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    said = {"accept": "application/json, text/event-stream", **headers}
    url = f"http://127.0.0.1:{one.port}/mcp"
    return httpx2.post(url, json=body, headers=said).status_code


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 401, id="no token"),
        pytest.param({"authorization": "Bearer nobody"}, 401, id="a token of nobody's"),
        pytest.param({"authorization": "Basic t-workers"}, 401, id="another scheme"),
        pytest.param(
            {"authorization": "Bearer t-workers", "host": "evil.example"}, 421, id="another host"
        ),
        pytest.param(
            {"authorization": "Bearer t-workers", "origin": "http://evil.example"},
            403,
            id="another origin",
        ),
    ],
)
def test_who_may_not_come_in_is_refused_before_any_tool(
    many: RunningGateway, headers: dict[str, str], status: int
) -> None:
    before = len(many.calls)
    assert post(many, **headers) == status
    assert len(many.calls) == before


def test_a_result_over_the_limit_is_cut_with_a_mark_and_the_whole_is_told(
    many: RunningGateway,
) -> None:
    before = len(many.calls)

    async def called() -> str:
        async with agent(many.port, "t-workers") as client:
            return text(await client.call_tool("brain__huge", {"size": 100_000}))

    said = asyncio.run(called())
    told = many.until_told(before + 1)[before]
    assert told.whole is not None
    assert told.size == len(told.whole) > 200_000
    assert json.loads(told.whole)["content"][0]["text"] == "é" * 100_000
    kept, _, mark = said.partition("\n[cut: ")
    assert set(kept) == {"é"}
    assert 59 << 10 <= len(said.encode()) <= 60 << 10
    assert hashlib.sha256(told.whole).hexdigest() in mark


@pytest.mark.parametrize("size", [0, 14_000])
def test_a_result_within_the_limit_comes_as_it_is(many: RunningGateway, size: int) -> None:
    before = len(many.calls)

    async def called() -> str:
        async with agent(many.port, "t-workers") as client:
            return text(await client.call_tool("brain__huge", {"size": size}))

    assert asyncio.run(called()) == "é" * size
    assert many.until_told(before + 1)[before].whole is None


def test_a_tool_that_fails_is_a_tools_error(many: RunningGateway) -> None:
    async def called() -> bool:
        async with agent(many.port, "t-workers") as client:
            return (await client.call_tool("brain__boom", {})).is_error

    before = len(many.calls)
    assert asyncio.run(called())
    assert many.until_told(before + 1)[before].outcome == "error"


async def call(one: RunningGateway, name: str, token: str = ALL.token, **said: object) -> str:
    async with agent(one.port, token) as client:
        return text(await client.call_tool(name, said))


def test_names_that_no_model_takes_are_mapped_and_clashes_numbered(whole: RunningGateway) -> None:
    seen = asyncio.run(names(whole, ALL.token))
    odd = {name for name in seen if name.startswith("brain__dots")}
    assert odd == {"brain__dots_and_spaces", "brain__dots_and_spaces_2"}
    assert "brain__" + "n" * 57 in seen
    said = {asyncio.run(call(whole, name)) for name in odd}
    assert said == {"odd", "odd too"}
    assert asyncio.run(call(whole, "brain__" + "n" * 57)) == "long"
    whole.until_noted("agents see tool", 3)
    noted = [note for note in whole.notes if "agents see tool" in note]
    assert len(noted) == 3
    assert sum("another tool has its name" in note for note in noted) == 1


def test_a_slow_call_ends_at_its_limit_and_the_next_one_works(tmp_path: Path) -> None:
    with gateway(tmp_path, [program("stdio")], ALL, call_s=1.5) as one:
        said = asyncio.run(call(one, "brain__slow", seconds=3))
        assert said == "slow of server brain took longer than 1.5 s"
        assert one.until_told(1)[0].outcome == "timeout"


def test_an_attempt_has_so_many_calls_and_the_next_one_as_many(tmp_path: Path) -> None:
    with gateway(tmp_path, [program("stdio")], ALL, calls=2) as one:
        tries = [asyncio.run(call(one, "brain__search_code", text="x")) for _ in range(3)]
        assert tries == ["found x", "found x", "this attempt has made its 2 tool calls"]
        one.begin(ALL.token)
        assert asyncio.run(call(one, "brain__search_code", text="y")) == "found y"
        one.end(ALL.token)
        said = asyncio.run(call(one, "brain__search_code", text="y"))
        assert said == "no attempt of yours is under way"
        outcomes = [told.outcome for told in one.until_told(5)]
    assert outcomes == ["ok", "ok", "limit", "ok", "refused"]


def test_a_server_that_dies_in_a_call_is_a_tools_error_and_is_started_again(
    whole: RunningGateway,
) -> None:
    before = len(whole.calls)
    said = asyncio.run(call(whole, "brain__dies"))
    assert said.startswith("server brain can't be reached: ")
    end = time.monotonic() + 30
    while asyncio.run(call(whole, "brain__search_code", text="x")) != "found x":
        assert time.monotonic() < end, whole.notes
        time.sleep(0.1)
    assert whole.calls[before].outcome == "unreachable"


@pytest.mark.parametrize(
    ("server", "why"),
    [
        pytest.param(program("dead"), "(no licence key)", id="ends at once"),
        pytest.param(program("flood"), "Connection closed", id="talks for ever"),
        pytest.param(program("endless"), "Connection closed", id="a line without end"),
        pytest.param(
            Server(name="brain", command=["/no/such/server"]), "cannot start", id="is not there"
        ),
        pytest.param(
            Server(name="brain", url="http://127.0.0.1:9/mcp"), "connect", id="no HTTP there"
        ),
    ],
)
def test_a_server_that_never_works_takes_no_other_with_it(
    tmp_path: Path, server: Server, why: str
) -> None:
    both = worker(brain=None, other=None)
    with gateway(tmp_path, [server, program("stdio", "other")], both) as one:
        assert asyncio.run(call(one, "other__search_code", text="x")) == "found x"
        seen = asyncio.run(names(one, both.token))
        assert {name.partition("__")[0] for name in seen} == {"other"}
        noted = [note for note in one.until_noted(why) if note.startswith("MCP server brain: ")]
        assert any(why in note for note in noted), one.notes


def test_banners_on_stdout_are_passed_over(tmp_path: Path) -> None:
    with gateway(tmp_path, [program("banner")], ALL) as one:
        assert asyncio.run(call(one, "brain__search_code", text="x")) == "found x"


def test_a_list_of_tools_may_change(whole: RunningGateway) -> None:
    assert asyncio.run(call(whole, "brain__grow")) == "more"
    assert "brain__grown" in asyncio.run(names(whole, ALL.token))
    assert asyncio.run(call(whole, "brain__grown")) == "grown"


def test_a_server_has_nothing_of_the_rigs_in_its_environment(whole: RunningGateway) -> None:
    said = asyncio.run(call(whole, "brain__environment")).split()
    assert set(said) - {"LC_CTYPE"} == {"HOME", "LANG", "PATH", "TMPDIR"}


def test_a_frozen_gateway_goes_on_where_it_stood(tmp_path: Path) -> None:
    """While the judge measures it stands still; a call's limit does not count that."""
    with gateway(tmp_path, [program("stdio")], ALL, call_s=3) as one:
        assert asyncio.run(call(one, "brain__search_code", text="x")) == "found x"

        async def called() -> str:
            async with agent(one.port, ALL.token) as client:
                asked = asyncio.create_task(client.call_tool("brain__slow", {"seconds": 1.5}))
                await asyncio.sleep(0.3)
                os.kill(one.process.pid, signal.SIGSTOP)
                await asyncio.sleep(4)
                os.kill(one.process.pid, signal.SIGCONT)
                return text(await asked)

        assert asyncio.run(called()) == "at last"


@contextlib.contextmanager
def http_server() -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    one = start_http(port)
    try:
        yield port, one
    finally:
        one.kill()
        one.wait()


def start_http(port: int) -> "subprocess.Popen[bytes]":
    argv = [sys.executable, str(SERVERS), "http", str(port)]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_an_http_server_that_dies_comes_back_when_it_does(tmp_path: Path) -> None:
    with http_server() as (port, first):
        server = Server(name="brain", url=f"http://127.0.0.1:{port}/mcp")
        with gateway(tmp_path, [server], ALL) as one:

            def works() -> bool:
                return asyncio.run(call(one, "brain__search_code", text="x")) == "found x"

            def until_it_works() -> None:
                end = time.monotonic() + 60
                while not works():
                    assert time.monotonic() < end, one.notes
                    time.sleep(0.2)

            until_it_works()
            first.kill()
            first.wait()
            assert not works()
            second = start_http(port)
            try:
                until_it_works()
            finally:
                second.kill()
                second.wait()


def test_whoever_speaks_no_frame_ends_the_gateway_in_words(tmp_path: Path) -> None:
    with gateway(tmp_path, [], ALL) as one:
        one.line.sendall(b"\xff\xff\xff\xff")
        one.process.wait(timeout=30)
        assert one.process.returncode == 1
        assert one.process.stderr is not None
        assert one.process.stderr.read() == (
            b"gateway: a message of 4294967295 bytes: the longest has 17825792\n"
        )
        one.process.returncode = 0


def test_an_answer_never_waits_for_an_acknowledgement() -> None:
    """Connections inherit it; without, each call takes 40 ms more."""

    async def opened() -> int:
        calls = Calls({}, {}, Figures(), lambda _: asyncio.sleep(0))
        with socket.create_server(("127.0.0.1", 0)) as listener:
            task = Doors(calls, (), (1,)).open(listener)
            found = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            task.cancel()
        return found

    assert asyncio.run(opened()) != 0
