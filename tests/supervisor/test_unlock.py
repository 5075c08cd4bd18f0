"""What MCP servers' headers carry leaves the supervisor in one memory file, and in no word."""

import secrets
from pathlib import Path

import msgspec
import pytest

from supervisor.access import Accesses
from supervisor.unlock import unlock
from thermite.agent.gateway.wire import secret_headers
from thermite.rig.access import set_access
from thermite.schema.access import Access, SecretHeaders
from thermite.schema.command import McpProvider
from thermite.schema.offer import Unlock
from thermite.schema.rig_settings import RigSettings

TOKEN = f"Bearer canary-{secrets.token_hex(16)}"
URL = "https://mcp.example.org/brain"


def asked(
    state: Path, url: str = URL, command: list[str] | None = None, **headers: str
) -> tuple[dict[str, str], dict[str, SecretHeaders]]:
    """Problems and what was found, for one server with these headers."""
    accesses = Accesses(state, RigSettings(key_command=command))
    wanted = Unlock(n=7, servers=[McpProvider(name="brain", url=url, headers=headers)])
    answer, letter = unlock(accesses, wanted, lambda _: None)
    assert answer.n == 7
    assert TOKEN.split()[1] not in msgspec.json.encode(answer).decode()
    return answer.problems, secret_headers(letter)


def test_a_secret_that_is_there_is_sent_as_it_stands(tmp_path: Path) -> None:
    set_access(tmp_path, "brain-token", Access(place="https://mcp.example.org", secret=TOKEN))
    problems, found = asked(tmp_path, Authorization="brain-token")
    assert problems == {}
    assert found["brain"].headers == {"Authorization": TOKEN}
    assert TOKEN not in repr(found)


def test_a_secret_may_come_from_key_command(tmp_path: Path) -> None:
    printer = tmp_path / "printer"
    printer.write_text(f"#!/bin/sh\necho '{TOKEN}'\necho '{TOKEN}' >&2\n")
    printer.chmod(0o755)
    set_access(tmp_path, "brain-token", Access(place="https://mcp.example.org"))
    command = [str(printer), "{name}"]
    assert asked(tmp_path, URL, command, X="brain-token")[1]["brain"].headers == {"X": TOKEN}


@pytest.mark.parametrize(
    ("place", "url", "says"),
    [
        pytest.param(
            None, URL, f"run thermite rig access set brain-token --for {URL} on it", id="missing"
        ),
        pytest.param(
            "https://other.example.org", URL, "is for https://other.example.org", id="elsewhere"
        ),
        pytest.param(
            "https://mcp.example.org", "http://mcp.example.org/brain", "names http://", id="http"
        ),
        pytest.param("ssh://git@mcp.example.org", URL, "is for ssh://", id="a key"),
    ],
)
def test_a_secret_that_can_not_be_sent_there_is_told_by_name(
    tmp_path: Path, place: str | None, url: str, says: str
) -> None:
    if place is not None:
        set_access(tmp_path, "brain-token", Access(place=place))
    problems, found = asked(tmp_path, url, Authorization="brain-token")
    assert problems["brain"].startswith("header Authorization: ")
    assert says in problems["brain"]
    assert found == {}


def test_a_secret_that_no_header_carries_is_told_by_name(tmp_path: Path) -> None:
    """The client that stumbled over it quoted it, and what it quotes goes to agents."""
    set_access(tmp_path, "t", Access(place=URL, secret=f"{TOKEN} "))
    problems, found = asked(tmp_path, URL, Authorization="t")
    assert problems["brain"].startswith("header Authorization: the secret of access t begins or")
    assert found == {}


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/mcp", f"{URL}?profile=a%20b"])
def test_a_server_of_the_machine_and_a_query_are_within_a_place(tmp_path: Path, url: str) -> None:
    place = "http://127.0.0.1:8000" if url.startswith("http:") else URL
    set_access(tmp_path, "t", Access(place=place, secret=TOKEN))
    assert asked(tmp_path, url, X="t")[0] == {}
