"""The supervisor as a process: what it offers, refuses, leaves alone. The test is the harness."""

import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.orders import Orders, at, trusted
from tests.requirement import shows
from tests.supervisor.harness_end import PATIENCE_S, ROOT, Harness
from thermite.command.signing_key import SigningKey
from thermite.schema.child_exit import REFUSED
from thermite.schema.offer import (
    MAX_OPEN_OFFERS,
    Offer,
    Refuse,
    Wait,
    encode,
    name_bytes,
)


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


@shows("K6")
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


def test_what_was_read_ahead_is_judged_by_the_trust_of_its_turn(running: Harness) -> None:
    for _ in range(MAX_OPEN_OFFERS):
        running.orders.drop(running.orders.command())
    other = SigningKey.generate()
    payload = running.orders.payload(issuer=other.public.id)
    offers = [running.offer()[0] for _ in range(MAX_OPEN_OFFERS)]
    running.orders.drop(running.orders.sealed(payload, other), "last.cmd.json")
    assert running.silent(1)  # it has read it meanwhile, and would refuse it
    running.orders.write_trust(trusted(running.orders.key), trusted(other, roles=["command"]))
    running.decide(offers[0])
    message, _ = running.offer()
    assert isinstance(message, Offer)
    assert name_bytes(message.name) == b"last.cmd.json"


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


@shows("K7")
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
    assert done.returncode == REFUSED
    assert "thermite rig serve" in done.stderr
    assert "Traceback" not in done.stderr
