"""Secrets pass through the harness in a memory file that it never reads."""

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

from supervisor.peer import sealed
from tests.harness.live import Knock, Live, NoStages
from thermite.errors import CommandError, InfrastructureError
from thermite.harness.unlocking import Unlocking
from thermite.rig.stages import Stages
from thermite.schema.command import McpProvider
from thermite.schema.offer import Unlock, Unlocked

PLAIN = McpProvider(name="plain", url="https://mcp.example.org")
BRAIN = McpProvider(name="brain", url="https://mcp.example.org", headers={"X": "brain-token"})


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    one = Live(tmp_path / "rig", cast("Stages", NoStages()))
    one.open()
    yield one
    one.close()


def answered_by(knock: Knock, problems: dict[str, str], asked: list[Unlock]) -> threading.Thread:
    """A supervisor that answers the next question."""

    def answer() -> None:
        while (message := knock.peer.receive()) is None:
            pass
        assert isinstance(message, Unlock)
        asked.append(message)
        knock.send(Unlocked(n=message.n + 1, problems={}), b"of another question")
        knock.send(Unlocked(n=message.n, problems=problems), b"the letter")

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


def memory_files() -> int:
    """How many this process holds; what else it opens meanwhile is not the letter's."""
    held = 0
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own
            held += str(entry.readlink()).startswith("/memfd:")
    return held


def test_a_letter_reaches_whoever_asked_and_is_closed_afterwards(live: Live) -> None:
    asked: list[Unlock] = []
    knock = Knock(live)
    before = memory_files()
    thread = answered_by(knock, {}, asked)
    with live.bench.unlocking.letter([PLAIN, BRAIN]) as letter:
        assert letter.descriptor is not None
        assert os.pread(letter.descriptor, 100, 0) == b"the letter"
    thread.join()
    assert [one.servers for one in asked] == [[BRAIN]]
    assert memory_files() == before


def test_an_order_whose_secret_is_missing_is_refused_in_the_supervisors_words(live: Live) -> None:
    words = "header X: this rig has no access named brain-token: run thermite rig access set"
    thread = answered_by(Knock(live), {"brain": words}, [])
    with pytest.raises(CommandError) as found:
        live.bench.unlocking.check([BRAIN])
    thread.join()
    assert (found.value.code, str(found.value)) == ("mcp_servers", f"MCP server brain: {words}")


def test_servers_without_headers_need_no_supervisor() -> None:
    with Unlocking().letter([PLAIN]) as letter:
        assert letter.descriptor is None


def test_nobody_waits_for_a_supervisor_that_says_nothing() -> None:
    said: list[Unlock] = []
    unlocking = Unlocking()
    with pytest.raises(InfrastructureError), unlocking.letter([BRAIN]):
        raise AssertionError("there is nobody to ask")
    unlocking.connect(said.append)
    with pytest.raises(InfrastructureError), unlocking.letter([BRAIN], lambda: True):
        raise AssertionError("nobody answered")
    late = sealed(b"late")
    unlocking.answered(Unlocked(n=said[0].n, problems={}), late)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(late)
