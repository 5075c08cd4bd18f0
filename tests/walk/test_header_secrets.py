"""A secret of an MCP server's header on a real walk: the server gets it, and nobody else."""

import json
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.guarded import guarded
from tests.crash.sleeper import GIT, write
from tests.served import ServedRig, served
from tests.supervisor.test_access import everywhere
from tests.walk.test_access import holders, written
from thermite.schema.event import ToolCalled

WORKER = Path(__file__).parents[1] / "harness" / "mcp_worker.py"
LOOKS = "env; cat /proc/self/environ $THERMITE_BRIEF; ls -R / 2>/dev/null | grep brain-key"
CALLS = ("list", 'brain__search_code={"text": "x"}', "brain__repeat", "brain__blurt")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[ServedRig]:
    (tmp_path / "home").mkdir()
    with served(tmp_path / "home") as one:
        yield one


def contract(folder: Path) -> Path:
    """A research project whose worker calls tools, and shows all that it can find out."""
    shown = " ".join(f"'{one}'" for one in CALLS)
    script = f"{LOOKS}; python3 ask.py {shown} 'brain__slow={{\"seconds\": 2}}'; rm ask.py"
    write(folder, {"ask.py": WORKER.read_text(encoding="utf-8")})
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "first"]):
        subprocess.run([*GIT, "-C", str(folder), *args], check=True, capture_output=True)
    wanted = {
        "schema_version": 1,
        "name": "ask",
        "campaign": "research",
        "task": "ask brain",
        "isolation": "any",
        "project": {"repo": "p", "commit": "HEAD"},
        "mcp_servers": [{"name": "brain", "agents": ["workers"]}],
        "agents": {"workers": {"backend": "command", "options": {"command": ["sh", "-c", script]}}},
        "budget": {"attempts": 1},
    }
    path = folder / "contract.json"
    path.write_text(json.dumps(wanted), encoding="utf-8")
    return path


def test_a_headers_secret_reaches_its_server_and_stands_nowhere_else(
    rig: ServedRig, tmp_path: Path
) -> None:
    token = f"canary-{secrets.token_hex(16)}"
    order = str(contract(rig.home / "p"))
    state = ("--state", str(rig.state_folder))
    (tmp_path / "token").touch(0o600)
    (tmp_path / "token").write_text(f"Bearer {token}\n", encoding="ascii")
    with guarded(tmp_path / "server", f"Bearer {token}") as server:
        rig.serve_until_there()
        rig.know()
        (tmp_path / "pem").write_text(server.pem, encoding="ascii")
        named = ("--url", server.url, "--header", "X-Key=brain-key")
        rig.told("settings", "mcp", "add", "brain", *named)
        refused = rig.told("assign", order, "--rig", "bench", "--wait", code=4)
        assert refused["receipt"]["message"] == (
            "MCP server brain: header X-Key: this rig has no access named brain-key: run thermite"
            f" rig access set brain-key --for {server.url} on it"
        )
        given = ("--secret", str(tmp_path / "token"), "--trusted", str(tmp_path / "pem"))
        shown = [rig.run("rig", "access", "set", "brain-key", "--for", server.url, *given, *state)]
        assert shown[0].returncode == 0, shown[0].stderr
        told = rig.told("assign", order, "--rig", "bench", "--wait")
        rig.until(lambda: len(calls(rig)) >= len(CALLS) - 1)
        seen = everywhere(token)
        rig.until(lambda: rig.assignment is not None and rig.assignment.status == "ended")
    looks = (("audit", str(rig.state_folder)), ("show", "1", *state), ("status", *state))
    shown += [rig.run(*words) for words in looks]
    rig.stop()
    outcomes = [(one.tool, one.outcome) for one in calls(rig)]
    assert outcomes == [
        ("search_code", "ok"),
        ("repeat", "ok"),
        ("blurt", "error"),
        ("slow", "ok"),
    ], rig.said()
    assert seen == []
    canaries = {"token": written(token)}
    assert holders(canaries, rig.home) == {"token": {"rig/access/brain-key.json"}}
    said = json.dumps([refused, told, rig.said()]) + "".join(o.stdout + o.stderr for o in shown)
    assert token not in said


def calls(rig: ServedRig) -> list[ToolCalled]:
    _ = rig.state  # reads what is new
    return [one.data for one in rig.events if isinstance(one.data, ToolCalled)]
