"""Backends that a rig refuses before anything is created."""

from typing import Any

import msgspec
import pytest

from thermite.errors import CommandError
from thermite.harness.assign_backend import check_backend, check_foreign_code, check_tools
from thermite.schema.command import AssignBody, McpProvider, Providers
from thermite.schema.contract import Contract, McpServer
from thermite.schema.event import IsolationProbe
from thermite.schema.rig_settings import McpProgram
from thermite.schema.stage import IsolationRecord


def contract(
    backend: str, isolation: str = "any", options: dict[str, Any] | None = None
) -> Contract:
    return msgspec.convert(
        {
            "schema_version": 1,
            "name": "x",
            "campaign": "hill_climb",
            "task": "t",
            "project": {"repo": "p", "commit": "0" * 40},
            "isolation": isolation,
            "agents": {"workers": {"backend": backend, "options": options or {}}},
        },
        Contract,
    )


@pytest.mark.parametrize(
    ("backend", "isolation", "level", "refused"),
    [
        pytest.param("command", "protected", "none", True, id="the judge's own user"),
        pytest.param("command", "any", "none", False, id="the contract takes any"),
        pytest.param("command", "protected", "users", False, id="a user of its own"),
        pytest.param("replay", "protected", "none", False, id="no foreign code"),
    ],
)
def test_foreign_code_never_runs_as_the_judge_unless_asked_for(
    backend: str, isolation: str, level: str, refused: bool
) -> None:
    probe = IsolationProbe(level=level, features=[], gaps=[], canaries={})
    if not refused:
        check_foreign_code(contract(backend, isolation), probe)
        return
    with pytest.raises(CommandError, match="runs foreign code") as found:
        check_foreign_code(contract(backend, isolation), probe)
    assert found.value.code == "isolation"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        pytest.param({}, "is a list of text, the program and its arguments; it is null", id="none"),
        pytest.param({"command": "ls"}, 'it is "ls"', id="a text"),
        pytest.param({"command": []}, "it is []", id="empty"),
        pytest.param({"command": [""]}, 'it is [""]', id="no program"),
        pytest.param({"command": ["a\0b"]}, "is a list of text", id="a NUL"),
        pytest.param({"command": ["a"], "limits": {"wall_s": 0}}, "wall_s is 0:", id="no time"),
        pytest.param({"command": ["a"], "limits": {"wall_s": True}}, "wall_s is true", id="true"),
        pytest.param({"command": ["a"], "limits": {"wall_s": 86401}}, "up to a day", id="long"),
    ],
)
def test_options_that_no_program_starts_with_are_refused_at_assignment(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(CommandError) as found:
        check_backend(contract("command", options=options))
    assert found.value.code == "contract_bad"
    assert says in str(found.value)


def test_a_program_with_a_limit_is_taken() -> None:
    check_backend(contract("command", options={"command": ["a"], "limits": {"wall_s": 0.5}}))


BRAIN = McpServer(name="brain", agents=["workers"])
HERE = {"brain": McpProgram(command=["brain"])}
PLAIN = McpProvider(name="brain", url="https://mcp.example.org")
SECRET = McpProvider(name="brain", url="https://mcp.example.org", headers={"X": "secret"})
HOST = msgspec.structs.replace(SECRET, headers={"Host": "secret"})
ODD = msgspec.structs.replace(SECRET, headers={"X\r\nY": "secret"})
MANY = msgspec.structs.replace(SECRET, headers={f"X-{n}": "secret" for n in range(17)})


@pytest.mark.parametrize(
    ("backend", "programs", "providers", "slots", "features", "says"),
    [
        pytest.param("command", HERE, [], ["gateway-0"], ["netns"], None, id="a program here"),
        pytest.param("command", {}, [PLAIN], ["gateway-0"], ["landlock:4"], None, id="an address"),
        pytest.param("replay", {}, [], [], [], None, id="nobody calls"),
        pytest.param(
            "command", {}, [], ["gateway-0"], ["netns"], "nothing says where it is", id="nowhere"
        ),
        pytest.param("command", {}, [SECRET], ["gateway-0"], ["netns"], None, id="a secret"),
        pytest.param(
            "command", {}, [HOST], ["gateway-0"], ["netns"], "the protocol's own", id="its own"
        ),
        pytest.param(
            "command", {}, [ODD], ["gateway-0"], ["netns"], "is no header with the name", id="odd"
        ),
        pytest.param(
            "command", {}, [MANY], ["gateway-0"], ["netns"], "17 headers: at most", id="many"
        ),
        pytest.param(
            "command", HERE, [], ["worker-0"], ["netns"], "no slot for a gateway", id="no slot"
        ),
        pytest.param(
            "command", HERE, [], ["gateway-0"], ["landlock:3"], "takes Landlock 4", id="no way"
        ),
    ],
)
def test_workers_are_promised_no_tools_that_they_could_not_call(
    backend: str,
    programs: dict[str, McpProgram],
    providers: list[McpProvider],
    slots: list[str],
    features: list[str],
    says: str | None,
) -> None:
    body = AssignBody(
        contract=msgspec.Raw(b"{}"), mcp_servers=[BRAIN], providers=Providers(mcp=providers)
    )
    isolation = IsolationRecord(
        level="none", features=features, network="seccomp", user="harness", uid=0, gaps=[]
    )
    if says is None:
        check_tools(contract(backend), body, programs, slots, isolation)
        return
    with pytest.raises(CommandError, match=says):
        check_tools(contract(backend), body, programs, slots, isolation)


def test_an_address_that_workers_will_not_have_is_not_put_into_their_arguments() -> None:
    wanted = contract("command", options={"command": ["agent", "--mcp={mcp_url}"]})
    body = AssignBody(contract=msgspec.Raw(b"{}"))
    isolation = IsolationRecord(
        level="none", features=[], network="seccomp", user="harness", uid=0, gaps=[]
    )
    with pytest.raises(CommandError, match="the workers get no MCP server") as found:
        check_tools(wanted, body, {}, [], isolation)
    assert found.value.code == "contract_bad"
    plain = contract("command", options={"command": ["agent"]})
    check_tools(plain, body, {}, [], isolation)
