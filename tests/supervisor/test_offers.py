"""The supervisor as a process: what it offers, refuses, leaves alone. The test is the harness."""

import array
import fcntl
import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from supervisor.peer import SEALS
from tests.orders import Orders, at, trusted
from thermite.command.signing_key import SigningKey
from thermite.schema.offer import (
    MAX_OPEN_OFFERS,
    Decided,
    Hello,
    Offer,
    Refuse,
    ToHarness,
    Wait,
    encode,
    name_bytes,
    to_harness,
)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0


class Harness:
    """The other end of the socket, answering as a test wishes."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.sock, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(PATIENCE_S)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.process: subprocess.Popen[bytes] | None = None
        self.is_up = False

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "supervisor"],
            env={
                "PYTHONPATH": str(ROOT),
                "PATH": os.environ["PATH"],
                "THERMITE_STATE": str(self.orders.state),
                "THERMITE_FD_PEER": str(self.theirs.fileno()),
            },
            pass_fds=[self.theirs.fileno()],
            stderr=subprocess.PIPE,
        )

    def greet(self) -> None:
        self.is_up = True
        self.sock.send(encode(Hello(n=0)))

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def hear(self, timeout_s: float = PATIENCE_S) -> tuple[ToHarness, bytes | None]:
        self.sock.settimeout(timeout_s)
        raw, beside, _, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(4) + socket.CMSG_SPACE(12))
        body = None
        for level, kind, data in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptor = array.array("i", data)[0]
                assert fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) == SEALS
                body = os.read(descriptor, 1 << 21)
                os.close(descriptor)
        return to_harness(raw), body

    def offer(self, timeout_s: float = PATIENCE_S) -> tuple[Offer | Refuse, bytes | None]:
        """The next message that is no greeting."""
        until = time.monotonic() + timeout_s
        while True:
            message, body = self.hear(max(0.01, until - time.monotonic()))
            if isinstance(message, Offer | Refuse):
                return message, body
            if message == Hello(n=0) and self.is_up:
                self.sock.send(encode(Hello(n=1)))

    def silent(self, for_s: float) -> bool:
        try:
            self.offer(for_s)
        except TimeoutError:
            return True
        return False

    def decide(self, message: Offer | Refuse, *, move: bool = True) -> None:
        if move:
            name = os.fsdecode(name_bytes(message.name))
            (self.orders.new / name).rename(self.orders.state / "inbox" / "done" / name)
        said = Decided(n=message.n, outcome="accepted", code=None, message=None, receipt=None)
        self.sock.send(encode(said))


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    made = Orders(tmp_path / "rig")
    made.make_folders()
    made.write_trust()
    return made


@pytest.fixture
def harness(orders: Orders) -> Iterator[Harness]:
    made = Harness(orders)
    yield made
    made.end()
    made.sock.close()
    made.theirs.close()


@pytest.fixture
def running(harness: Harness) -> Harness:
    harness.start()
    harness.is_up = True
    assert harness.hear()[0] == Hello(n=0)
    harness.sock.send(encode(Hello(n=1)))
    return harness


def test_a_good_command_is_offered_with_its_very_bytes(running: Harness) -> None:
    raw = running.orders.command()
    path = running.orders.drop(raw)
    message, body = running.offer()
    assert isinstance(message, Offer)
    assert body == raw
    assert message.sha256 == hashlib.sha256(raw).hexdigest()
    assert name_bytes(message.name) == os.fsencode(path.name)
    assert (message.dev, message.ino) == (path.stat().st_dev, path.stat().st_ino)


def test_nothing_is_offered_before_the_harness_has_said_hello(harness: Harness) -> None:
    harness.orders.drop(harness.orders.command())
    harness.start()
    assert harness.silent(3)
    harness.greet()
    assert isinstance(harness.offer()[0], Offer)


def refusal_of(change: Callable[[Orders], bytes], code: str, *, owed: bool) -> object:
    return pytest.param(change, code, owed, id=code)


def unsigned(orders: Orders) -> bytes:
    return orders.command().replace(b'"signatures":[{', b'"signatures":[],"were":[{')


def duplicate_keys(orders: Orders) -> bytes:
    payload = orders.payload("stop_campaign", {"assignment": "a" * 32, "now": False})
    return orders.sealed(payload.replace(b'"now":false', b'"now":false,"now":true'))


def unknown_field(orders: Orders) -> bytes:
    return orders.command(surprise=1)


@pytest.mark.parametrize(
    ("change", "code", "owed"),
    [
        refusal_of(lambda o: o.command()[:-40], "malformed_envelope", owed=False),
        pytest.param(unsigned, "malformed_envelope", False, id="unsigned"),
        refusal_of(
            lambda o: o.sealed(o.payload(), SigningKey.generate()),
            "no_trusted_signature",
            owed=False,
        ),
        refusal_of(
            lambda o: o.command().replace(b"command.v1", b"receipt.v1"),
            "unknown_payload_type",
            owed=False,
        ),
        pytest.param(duplicate_keys, "malformed_payload", True, id="duplicate keys in the body"),
        pytest.param(unknown_field, "malformed_payload", True, id="unknown field"),
        refusal_of(lambda o: o.command(rig="f" * 32), "wrong_rig", owed=True),
        refusal_of(lambda o: o.command(ledger="f" * 32), "wrong_ledger", owed=True),
        refusal_of(lambda o: o.command(issuer="f" * 32), "issuer_did_not_sign", owed=True),
        refusal_of(lambda _: b"x" * ((1 << 20) + 1), "too_large", owed=False),
        pytest.param(lambda _: b"", "malformed_envelope", False, id="empty"),
        pytest.param(lambda _: b"[" * 100_000, "malformed_envelope", False, id="deep"),
    ],
)
def test_what_fails_a_check_is_handed_over_as_refused(
    running: Harness, change: Callable[[Orders], bytes], code: str, owed: bool
) -> None:
    raw = change(running.orders)
    running.orders.drop(raw)
    message, body = running.offer()
    assert isinstance(message, Refuse)
    assert (message.code, message.size) == (code, len(raw))
    assert message.message
    assert body == (raw if owed else None)


def test_a_changed_byte_of_the_payload_is_no_trusted_signature(running: Harness) -> None:
    raw = running.orders.command()
    at_byte = raw.index(b'"payload":"') + 40
    changed = raw[:at_byte] + (b"A" if raw[at_byte : at_byte + 1] != b"A" else b"B")
    running.orders.drop(changed + raw[at_byte + 1 :])
    message, _ = running.offer()
    assert isinstance(message, Refuse)
    assert message.code == "no_trusted_signature"


@pytest.mark.parametrize("kind", ["link", "fifo", "socket", "hard link"])
def test_only_plain_files_are_read(running: Harness, tmp_path: Path, kind: str) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(running.orders.command())
    path = running.orders.new / "odd.cmd.json"
    if kind == "link":
        path.symlink_to(target)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "hard link":
        os.link(target, path)
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            here = os.open(path.parent, os.O_RDONLY)
            listening.bind(f"/proc/self/fd/{here}/{path.name}")
            os.close(here)
    message, body = running.offer()
    assert isinstance(message, Refuse)
    assert (message.code, message.sha256, body) == ("not_a_plain_file", None, None)


def test_folders_dot_files_and_other_names_are_left_alone(running: Harness) -> None:
    orders = running.orders
    orders.drop(orders.command(), ".hidden.cmd.json")
    orders.drop(orders.command(), "command.json")
    (orders.new / "folder.cmd.json").mkdir()
    orders.drop(orders.command(), "folder.bundle")
    orders.drop(orders.command(), "good.cmd.json")
    assert name_bytes(running.offer()[0].name) == b"good.cmd.json"
    assert running.silent(3)


def test_a_file_written_in_place_in_slow_pieces_is_offered_whole(running: Harness) -> None:
    raw = running.orders.command()
    third = len(raw) // 3
    with (running.orders.new / "slow.cmd.json").open("wb", buffering=0) as file:
        for piece in (raw[:third], raw[third : 2 * third], raw[2 * third :]):
            file.write(piece)
            time.sleep(1.2)
    message, body = running.offer()
    assert isinstance(message, Offer)
    assert body == raw


def test_a_command_that_is_not_valid_yet_waits(running: Harness) -> None:
    running.orders.drop(running.orders.command(not_before=at(30), expires_at=at(60)))
    assert running.silent(3)


def test_a_little_skew_of_clocks_is_taken_both_ways(running: Harness) -> None:
    running.orders.drop(running.orders.command(issued_at=at(4), not_before=at(4)))
    assert isinstance(running.offer()[0], Offer)


def test_at_most_sixteen_offers_are_open_and_the_rest_follows(running: Harness) -> None:
    for _ in range(MAX_OPEN_OFFERS + 4):
        running.orders.drop(running.orders.command())
    offers = [running.offer()[0] for _ in range(MAX_OPEN_OFFERS)]
    assert running.silent(6)
    for message in offers:
        running.decide(message)
    rest = [running.offer()[0] for _ in range(4)]
    assert len({message.name for message in offers + rest}) == MAX_OPEN_OFFERS + 4


def test_wait_keeps_a_file_back_until_its_time(running: Harness) -> None:
    running.orders.drop(running.orders.command())
    message, _ = running.offer()
    running.sock.send(encode(Wait(n=message.n, code="bundle_missing", until=at(0.05))))
    again, _ = running.offer()
    assert again.name == message.name
    assert again.n != message.n


def test_what_was_decided_and_could_not_be_moved_is_not_offered_again(running: Harness) -> None:
    path = running.orders.drop(running.orders.command())
    message, _ = running.offer()
    running.decide(message, move=False)
    assert running.silent(7)
    os.utime(path)
    assert running.offer()[0].name == message.name


def test_a_restarted_harness_gets_open_offers_again(running: Harness) -> None:
    running.orders.drop(running.orders.command())
    first, _ = running.offer()
    running.greet()
    again, _ = running.offer()
    assert again.name == first.name


def test_a_restarted_supervisor_offers_again(running: Harness) -> None:
    running.orders.drop(running.orders.command())
    first, _ = running.offer()
    running.end()
    running.start()
    again, _ = running.offer()
    assert (again.name, again.n == first.n) == (first.name, False)


def test_it_ends_when_the_harness_end_is_closed(running: Harness) -> None:
    running.theirs.close()
    running.sock.shutdown(socket.SHUT_RDWR)
    assert running.process is not None
    assert running.process.wait(PATIENCE_S) == 1


def test_files_that_arrived_while_it_was_stopped_are_all_found(harness: Harness) -> None:
    names = {harness.orders.drop(harness.orders.command()).name for _ in range(40)}
    harness.start()
    harness.greet()
    seen = set()
    for _ in names:
        message, _ = harness.offer()
        seen.add(os.fsdecode(name_bytes(message.name)))
        harness.decide(message)
    assert seen == names


def test_a_folder_that_is_made_anew_is_watched_again(running: Harness) -> None:
    running.orders.drop(running.orders.command())
    running.decide(running.offer()[0])
    running.orders.new.rmdir()
    running.orders.new.mkdir()
    running.orders.drop(running.orders.command(), "after.cmd.json")
    assert name_bytes(running.offer()[0].name) == b"after.cmd.json"


def test_a_new_trust_counts_from_the_next_file_on(running: Harness) -> None:
    other = SigningKey.generate()
    running.orders.drop(running.orders.command())
    running.decide(running.offer()[0])
    running.orders.write_trust(trusted(running.orders.key), trusted(other, roles=["command"]))
    payload = running.orders.payload(issuer=other.public.id)
    running.orders.drop(running.orders.sealed(payload, other))
    assert isinstance(running.offer()[0], Offer)


def test_a_name_that_is_no_text_comes_through(running: Harness) -> None:
    name = b"a\xff\x1b[31m\n%41.cmd.json"
    (running.orders.new / os.fsdecode(name)).write_bytes(running.orders.command())
    message, _ = running.offer()
    assert name_bytes(message.name) == name
    assert message.name.isascii()
    assert message.name.isprintable()


def test_without_a_trust_nothing_is_offered_or_refused(harness: Harness) -> None:
    (harness.orders.state / "trust.json").unlink()
    harness.orders.drop(harness.orders.command())
    harness.start()
    harness.greet()
    assert harness.silent(3)
    harness.orders.write_trust()
    assert isinstance(harness.offer()[0], Offer)


def test_started_by_hand_it_says_what_to_do() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "supervisor"],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "thermite rig serve" in done.stderr
    assert "Traceback" not in done.stderr
