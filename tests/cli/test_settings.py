"""`thermite settings mcp`, and what it changes for a kit that names a server."""

import pytest

from tests.cli.operator_desk import Desk
from tests.control.desk import kit_files, write
from tests.requirement import shows
from thermite.control.key_files import read_key
from thermite.schema.command import AssignBody

GBRAIN = {
    "name": "gbrain",
    "url": "https://mcp.example.org/brain",
    "headers": {"Authorization": "gbrain-token"},
}
NAMES = {"mcp_servers": [{"name": "gbrain", "agents": ["workers"]}]}


def add(desk: Desk, *more: str) -> dict[str, object]:
    url = ("--url", "https://mcp.example.org/brain", "--header", "Authorization=gbrain-token")
    return desk.told("settings", "mcp", "add", "gbrain", *url, *more)


def test_a_server_is_added_listed_and_removed(desk: Desk) -> None:
    assert desk.told("settings", "mcp") == {"mcp": []}
    assert add(desk) == GBRAIN
    local: dict[str, object] = {"name": "local", "url": None, "headers": {}}
    assert desk.told("settings", "mcp", "add", "local") == local
    assert desk.told("settings", "mcp", "list") == {"mcp": [GBRAIN, local]}
    assert "gbrain-token" in desk.run("settings", "mcp").stdout
    assert desk.told("settings", "mcp", "remove", "gbrain") == {"name": "gbrain"}
    assert desk.told("settings", "mcp") == {"mcp": [local]}


@shows("K-076", "K-077")
def test_a_kit_is_signed_once_settings_has_the_server_that_it_names(desk: Desk) -> None:
    write(desk.folder / "kit", kit_files(**NAMES))
    refused = desk.assign(code=4)
    assert refused["error"].startswith("The kit names the MCP server gbrain, and Settings has no")
    assert desk.rig.dropped(".cmd.json") == []
    add(desk)
    desk.assign()
    key = read_key(desk.folder / "control" / "keys" / "command.key", lambda _: b"")
    body = desk.rig.opened(key).body
    assert isinstance(body, AssignBody)
    assert [(server.name, server.agents) for server in body.mcp_servers] == [
        ("gbrain", ["workers"])
    ]
    assert [provider.url for provider in body.providers.mcp] == [GBRAIN["url"]]
    desk.told("settings", "mcp", "remove", "gbrain")
    assert desk.assign(code=4)["error"] == refused["error"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        pytest.param(("add", "a_b"), 2, "is no name for an MCP server", id="name"),
        pytest.param(("add", "a", "--url", "ftp://x"), 2, "is no address", id="address"),
        pytest.param(
            ("add", "a", "--url", "https://me:pw@x"), 2, "without a user or password", id="password"
        ),
        pytest.param(("add", "a", "--header", "A=b"), 2, "give --url too", id="header alone"),
        pytest.param(
            ("add", "a", "--url", "https://x", "--header", "A"), 2, "has no =", id="no secret"
        ),
        pytest.param(
            ("add", "a", "--url", "https://x", "--header", "A=Bearer 1 2"),
            2,
            "the rig keeps the secret itself",
            id="a secret itself",
        ),
        pytest.param(("remove", "a"), 3, "it has none", id="not there"),
    ],
)
def test_what_is_no_server_is_refused_in_words(
    desk: Desk, args: tuple[str, ...], code: int, said: str
) -> None:
    told = desk.told("settings", "mcp", *args, code=code)
    assert said in told["error"]
    assert not (desk.folder / "control" / "settings.toml").exists()


def test_a_name_that_is_taken_stays_as_it_is(desk: Desk) -> None:
    add(desk)
    told = desk.told("settings", "mcp", "add", "gbrain", code=2)
    assert "mcp remove gbrain" in told["error"]
    assert desk.told("settings", "mcp") == {"mcp": [GBRAIN]}
