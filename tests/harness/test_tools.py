"""A campaign whose worker calls MCP tools, on a real spawner at each level."""

import json
import shutil
import socket
import sys
import sysconfig
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from tests.agent.gateway_process import SERVERS
from tests.judge.job.simulated_desk import KIT
from tests.levels import LEVELS, rig_at, why_not
from tests.open_folder import open_folder
from tests.requirement import shows
from tests.simulated_campaign import Home, Life
from thermite.cli.rig_serve import gateway_reach
from thermite.harness.book import Draft
from thermite.harness.gateway import Gateway, sources
from thermite.ledger.replay import recorded
from thermite.rig.stages import Stages
from thermite.schema.contract import McpServer
from thermite.schema.event import AgentFinished, ToolCalled
from thermite.schema.rig_settings import McpProgram, RigSettings
from thermite.schema.stage import LevelName

WORKER = Path(__file__).with_name("mcp_worker.py")
SLOTS = {"worker-0": False, "gateway-0": True}
BRAIN = McpServer(
    name="brain",
    agents=["workers", "advisors"],
    tools={"workers": ["search_code", "huge", "dies"], "advisors": ["secret"]},
)


@pytest.fixture(scope="module", params=LEVELS)
def rig(request: pytest.FixtureRequest) -> Iterator[tuple[Stages, Path]]:
    """A rig with a gateway's slot, and the folder of the servers that it may start."""
    level: LevelName = request.param
    if (problem := why_not(level)) is not None:
        pytest.skip(problem)
    with open_folder() as place:
        servers = place / "servers"
        servers.mkdir(mode=0o755)
        shutil.copy(SERVERS, servers / "servers.py")
        (servers / "servers.py").chmod(0o644)
        reach = {"gateway-0": [*gateway_reach(RigSettings()), servers]}
        with rig_at(level, place, slots=SLOTS, slot_reach=reach) as stages:
            yield stages, servers


def campaign(
    tmp_path: Path, stages: Stages, servers: Path, script: str, backend: str = "command"
) -> Life:
    kit = msgspec.structs.replace(KIT, mcp_servers=[BRAIN])
    home = Home(tmp_path, {"ms": 40}, {"a": {"ms": 30}}, manifest=kit, on_disk=True)
    limits = {"wall_s": 120}  # a worker whose gateway is lost must not wait for it
    options: dict[str, Any] = {"command": ["/bin/sh", "-c", script], "limits": limits}
    home.contract = {
        "campaign": "research",
        "cells": [],
        "held_out_cells": [],
        "objective": None,
        "budget": {"attempts": 1},
        "agents": {"workers": {"backend": backend, "options": options}},
        "isolation": "any",
    }
    life = Life(home)
    python = open_python() if stages.isolation.level.startswith("users") else sys.executable
    if python is None:
        pytest.skip("no Python of this version that a slot's user may run")
    packages = f"PYTHONPATH={sysconfig.get_path('purelib')}"
    server = str(servers / "servers.py")
    program = McpProgram(command=["/usr/bin/env", packages, python, server, "stdio"])
    life.bench = replace(life.bench, stages=stages, mcp={"brain": program})
    return life


def open_python() -> str | None:
    """Return a Python of this version that every user may run."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (Path(sys.executable), Path("/usr/local/bin", version), Path("/usr/bin", version)):
        real = path.resolve()
        if real.exists() and all(one.stat().st_mode & 0o001 for one in (real, *real.parents)):
            return str(path)
    return None


def placed() -> str:
    """Return the shell's words that put the worker's program in its folder."""
    code = urllib.parse.quote(WORKER.read_text())
    write = f'import urllib.parse; print(urllib.parse.unquote("{code}"))'
    return f"python3 -c '{write}' > w.py;"


def told(life: Life) -> tuple[list[Any], list[ToolCalled], AgentFinished]:
    rows = [row.event for row in recorded(life.home.rig.ledger)]
    calls = [event.data for event in rows if isinstance(event.data, ToolCalled)]
    lanes = {event.lane for event in rows if isinstance(event.data, ToolCalled)}
    assert lanes <= {0}
    (finished,) = [event.data for event in rows if isinstance(event.data, AgentFinished)]
    said = (life.home.rig.blobs / str(finished.transcript)).read_text().splitlines()
    return [json.loads(line) for line in said], calls, finished


def test_a_gateway_that_ends_at_the_campaigns_own_end_is_no_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its line was closed, and not forgotten yet: the campaign ended with Bad file descriptor."""
    gateway = Gateway.__new__(Gateway)
    gateway._changed, gateway._is_over, gateway._slot = threading.Condition(), False, None
    monkeypatch.setattr(Gateway, "_keep", lambda *_: None)
    line, other = socket.socketpair()
    line.close()
    other.close()
    gateway._to_hang_up = line
    with gateway.running("gateway-0", []):
        pass
    assert gateway._is_over


@shows("K-075")
def test_a_workers_calls_are_its_kinds_and_each_is_an_event(
    tmp_path: Path, rig: tuple[Stages, Path]
) -> None:
    """A call of an advisor's tool is a tool error, and the campaign goes on."""
    stages, servers = rig
    calls = [
        "list",
        'brain__search_code={"text": "x"}',
        "brain__secret",
        'brain__huge={"size": 100000}',
        "brain__dies",
        'brain__search_code={"text": "y"}',
    ]
    shown = " ".join(f"'{one}'" for one in calls)
    script = f"{placed()} python3 w.py {shown}; rm w.py"
    life = campaign(tmp_path, stages, servers, script)
    assert life.run()
    said, calls_told, finished = told(life)
    assert finished.status == "ok", said
    assert said[0] == ["brain__dies", "brain__huge", "brain__search_code"]
    assert said[1] == [False, "found x"]
    assert said[2][0] is True
    assert "the workers have no tool" in said[2][1]
    assert said[3][0] is False
    assert "sha256 of the whole" in said[3][1]
    assert said[4][0] is True
    assert "can't be reached" in said[4][1]
    outcomes = [(one.server, one.tool, one.outcome) for one in calls_told[:4]]
    assert outcomes == [
        ("brain", "search_code", "ok"),
        ("brain", "secret", "refused"),
        ("brain", "huge", "ok"),
        ("brain", "dies", "unreachable"),
    ]
    assert {one.kind for one in calls_told} == {"workers"}
    cut = calls_told[2]
    assert cut.sha256 is not None
    assert (life.home.rig.blobs / cut.sha256).stat().st_size == cut.bytes
    assert life.assignment.end_reason == "budget: attempts"


def test_a_gateway_that_is_killed_in_an_attempt_is_there_again(
    tmp_path: Path, rig: tuple[Stages, Path]
) -> None:
    """Where it was, with the calls that the attempt has made; the campaign goes on."""
    stages, servers = rig
    asked = """'brain__search_code={"text": "x"}'"""
    script = f"{placed()} python3 w.py {asked} > first; sleep 1;"
    script += f" until python3 w.py {asked} | grep 'found x'; do sleep 0.3; done; rm w.py first"
    life = campaign(tmp_path, stages, servers, script)

    def kill(drafts: Sequence[Draft]) -> None:
        if any(isinstance(draft.data, ToolCalled) for draft in drafts):
            life.book.committed = None
            gateways = [one for one in psutil.Process().children(recursive=True) if is_one(one)]
            assert gateways
            gateways[-1].kill()

    life.book.committed = kill
    assert life.run()
    said, calls, finished = told(life)
    assert (finished.status, said) == ("ok", [[False, "found x"]])
    assert {one.outcome for one in calls} == {"ok"}


def is_one(process: psutil.Process) -> bool:
    try:
        return "thermite.agent.gateway" in process.cmdline()
    except psutil.Error:
        return False


def test_a_backend_that_runs_no_program_starts_no_gateway(tmp_path: Path) -> None:
    """A simulated rig has no slot for one, and would say so."""
    home = Home(
        tmp_path,
        {"ms": 40},
        {"a": {"ms": 30}},
        manifest=msgspec.structs.replace(KIT, mcp_servers=[BRAIN]),
    )
    life = Life(home)
    assert life.run()
    assert life.assignment.mcp_servers == [BRAIN]
    assert len(life.assignment.promotions) == 1


def test_a_gateway_runs_our_sources_and_nothing_that_python_keeps_of_them() -> None:
    """Another user's cache may be closed to the harness."""
    found = sources()
    assert {one.rpartition(".")[2] for one in found} == {"py"}
    assert {"thermite/__init__.py", "thermite/schema/access.py"} < set(found)
    assert "thermite/agent/gateway/hidden.py" in found
    assert len(found) == len(set(found))
