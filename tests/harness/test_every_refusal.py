"""Every refusal of the reference page is brought about by a file in a real inbox."""

import ast
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

from tests.harness.live import Live, until
from tests.orders import Orders, at, trusted
from thermite.command.signing_key import SigningKey
from thermite.harness.book import Draft
from thermite.schema.event import TrustSet

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "commands-and-signing.md"
TABLE = PAGE.read_text(encoding="utf-8").split("## What a rig checks")[1].split("## ")[0]
CODES = {
    code
    for line in TABLE.splitlines()
    if line.startswith("| ")
    for code in re.findall(r"`([a-z_]+)`", line.rsplit("|", 2)[1])
} - {"duplicate"}

UNFIT = "test_assignments.py::test_what_does_not_fit_is_refused_before_anything_is_created"
ELSEWHERE = {
    **dict.fromkeys(("contract_bad", "isolation", "kit_bad", "kit_misfit", "mcp_servers"), UNFIT),
    **dict.fromkeys(("not_supported", "import_mismatch"), UNFIT),
    "unreadable": "test_odd_files.py::test_an_order_that_cannot_be_read_is_refused_once",
    "not_yet_valid": (
        "test_decisions.py::test_a_command_that_is_not_valid_yet_waits_with_one_receipt"
    ),
    "import_path": "test_imports.py::test_an_import_is_a_plain_file_inside_the_inbox",
    "bundle_missing": "test_imports.py::test_a_bundle_that_does_not_come_in_time_is_refused",
    "rig_trouble": "test_decisions.py::test_an_order_that_cannot_be_kept_waits",
    "fetch_failed": "test_imports.py::test_a_source_that_fails_three_times_is_refused",
    "bundle_hash": (
        "test_imports.py::test_other_bytes_than_were_signed_are_looked_at_twice_and_refused"
    ),
    "import_too_large": "test_imports.py::test_an_import_beyond_the_rigs_limit_is_refused",
    "bundle_bad": "test_imports.py::test_a_bad_bundle_is_refused_and_nothing_of_it_stays",
    "commit_missing": "test_imports.py::test_a_bad_bundle_is_refused_and_nothing_of_it_stays",
    "model_missing": "test_imports.py::test_a_model_file_is_kept_by_its_digest",
    "rig_unfit": "test_assignments.py::test_a_rig_that_its_selftest_found_unfit_takes_none",
    "ledger_unavailable": (
        "test_together.py::test_a_ledger_that_takes_nothing_leaves_every_file_where_it_is"
    ),
}
"""Refusals that need a kit, git, or a disk that refuses: by the test beside this one."""


@dataclass
class Keys:
    """Who gives orders, by what is wrong with the key."""

    of: dict[str, SigningKey] = field(
        default_factory=lambda: {
            name: SigningKey.generate()
            for name in ("key_revoked", "key_expired", "key_not_allowed", "no_trusted_signature")
        }
    )

    def signed(self, orders: Orders, name: str) -> bytes:
        key = self.of[name]
        return orders.sealed(orders.payload(issuer=key.public.id), key)

    def trust(self, orders: Orders) -> TrustSet:
        rights: Mapping[str, dict[str, object]] = {
            "key_revoked": {"revoked_since": at(-60)},
            "key_expired": {"until": at(-60)},
            "key_not_allowed": {"types": ["steer_campaign"]},
        }
        others = [
            trusted(self.of[name], roles=["command"], **given) for name, given in rights.items()
        ]
        return TrustSet(version=2, keys=[trusted(orders.key), *others], by="local")


USED = "a" * 32
ASSIGN = {"contract": {}, "imports": [], "mcp_servers": [], "providers": {"mcp": []}}
LATE = {"issued_at": at(-60), "not_before": at(-60), "expires_at": at(-6)}
HERE: Mapping[str, Callable[[Orders], bytes]] = {
    "too_large": lambda o: o.command() + b" " * (1 << 20),
    "malformed_envelope": lambda o: o.command()[:-40],
    "unknown_payload_type": lambda o: o.command().replace(b"command.v1", b"receipt.v1"),
    "malformed_payload": lambda o: o.command(surprise=1),
    "issuer_did_not_sign": lambda o: o.command(issuer="f" * 32),
    "wrong_rig": lambda o: o.command(rig="f" * 32),
    "wrong_ledger": lambda o: o.command(ledger="f" * 32),
    "id_reused": lambda o: o.command(id=USED, expires_at=at(30)),
    "expired": lambda o: o.command(**LATE),
    "window_too_long": lambda o: o.command(expires_at=at(60 * 24 * 8)),
    "ledger_rolled_back": lambda o: o.command(after={"size": 99, "root": "x"}),
    "ledger_forked": lambda o: o.command(after={"size": 2, "root": "x"}),
    "malformed_body": lambda o: o.command("steer_campaign", {"assignment": USED}),
    "not_found": lambda o: o.command("pause_campaign", {"assignment": USED}),
    "wrong_state": lambda o: o.command(
        "update_trust", {"version": 99, "keys": msgspec.to_builtins([trusted(o.key)])}
    ),
}
LAST = {"ledger_locked": lambda o: o.command("assign_campaign", ASSIGN)}
"""What only the refusals before it bring about."""


def refused(live: Live, count: int) -> dict[str, dict[str, object]]:
    """Wait for so many reasons, and return each by the name that its file was dropped under."""
    until(lambda: len(live.reasons()) == count, f"{count} reasons")
    found = {}
    for path in live.reasons():
        name = path.name.split("-", 2)[2].removesuffix(".cmd.json.reason.json")
        found[name] = json.loads(path.read_bytes())
        assert path.with_name(path.name.removesuffix(".reason.json")).is_symlink() or (
            path.with_name(path.name.removesuffix(".reason.json")).is_file()
        )
    return found


def test_each_refusal_that_a_file_alone_can_bring_about(live: Live, tmp_path: Path) -> None:
    orders, keys = live.orders, Keys()
    live.book.append(Draft(keys.trust(orders)))
    live.open()
    with live.supervisor():
        orders.drop(orders.command(id=USED), "first.cmd.json")
        until(lambda: live.files("done"), "an accepted order")
        (orders.new / "not_a_plain_file.cmd.json").symlink_to(tmp_path)
        for name in keys.of:
            orders.drop(keys.signed(orders, name), f"{name}.cmd.json")
        for name, make in HERE.items():
            orders.drop(make(orders), f"{name}.cmd.json")
        count = 1 + len(keys.of) + len(HERE)
        refused(live, count)
        for name, make in LAST.items():
            orders.drop(make(orders), f"{name}.cmd.json")
        found = refused(live, count + len(LAST))
    assert {name: said["code"] for name, said in found.items()} == {name: name for name in found}
    assert {*found} == {"not_a_plain_file", *keys.of, *HERE, *LAST}
    assert all(said["message"] and said["what to do"] for said in found.values())
    events = live.events("command_refused")
    assert sorted(event.code for event in events) == sorted(found)
    assert live.files("new") == live.files("work") == []
    assert live.types().count("command_accepted") == 1
    assert live.faults == []


def test_no_refusal_of_the_page_is_left_out() -> None:
    assert {"not_a_plain_file", *Keys().of, *HERE, *LAST, *ELSEWHERE} == CODES


@pytest.mark.parametrize("code", sorted(ELSEWHERE))
def test_the_others_are_brought_about_by_the_test_that_is_named(code: str) -> None:
    file, _, name = ELSEWHERE[code].partition("::")
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    [test] = [
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    parts = [test, *test.decorator_list]
    assert any(f'"{code}"' in (ast.get_source_segment(text, part) or "") for part in parts)
