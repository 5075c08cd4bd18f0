"""The operator's commands as processes: exit codes, one document, and no traceback."""

import base64
import contextlib
import json
import os
import pty
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cli.operator_desk import ROOT, Desk
from thermite.command.keyring import PublicKey
from thermite.command.trust import read_trust
from thermite.control.key_files import read_key
from thermite.schema.command import Trust, TrustBody, TrustedKey


def answering(desk: Desk, answer: Callable[[bytes], object]) -> threading.Thread:
    """Answer the first order that appears, as a rig would."""

    def look() -> None:
        while not (found := desk.rig.dropped(".cmd.json")):
            time.sleep(0.01)
        answer(found[0].read_bytes())

    thread = threading.Thread(target=look)
    thread.start()
    return thread


def test_keygen_prints_the_line_that_a_rig_is_given(desk: Desk) -> None:
    told = desk.told("keygen", "keys/anna.key", "--no-passphrase", "--label", "Anna, laptop")
    key, label = PublicKey.from_line(told["line"])
    assert label == "Anna, laptop"
    assert told["fingerprint"] == key.fingerprint
    kept = (desk.folder / "keys" / "anna.pub").read_text(encoding="utf-8")
    assert kept == told["line"] + "\n"
    again = desk.run("keygen", "keys/anna.key", "--no-passphrase")
    assert again.returncode == 2
    assert "is not overwritten" in again.stderr


def test_a_new_key_gets_a_passphrase_unless_it_is_said_otherwise(desk: Desk) -> None:
    refused = desk.run("keygen", "keys/bob.key")
    assert refused.returncode == 2
    assert "--passphrase-file" in refused.stderr
    secret = desk.folder / "secret"
    secret.write_text("correct horse\n", encoding="utf-8")
    secret.chmod(0o600)
    told = desk.told("keygen", "keys/bob.key", "--passphrase-file", "secret")
    assert told["encrypted"]
    assert desk.told("keygen", "keys/rig.key", "--role", "rig")["encrypted"] is False
    sent = desk.assign("--key", "keys/bob.key", "--passphrase-file", "secret")
    assert sent["sent"]
    locked = desk.assign("--key", "keys/bob.key", code=2)
    assert "has a passphrase" in locked["error"]


def test_an_accepted_assignment_ends_with_0_and_its_receipt(desk: Desk) -> None:
    thread = answering(desk, lambda order: desk.rig.answer(order, "accepted", warnings=["w"]))
    told = desk.assign("--wait")
    thread.join()
    assert told["receipt"]["outcome"] == "accepted"
    assert told["receipt"]["command"]["sha256"] == told["command"]
    assert told["assignment"] == told["command"][:32]
    assert told["warnings"] == ["w"]
    (listed,) = desk.told("receipts", "list")["receipts"]
    assert listed["receipt"] == told["receipt"]


@pytest.mark.parametrize("is_here", [False, True])
def test_what_follows_an_acceptance_can_be_typed(desk: Desk, *, is_here: bool) -> None:
    if is_here:
        (desk.folder / "rig/ledger.db").touch()
    thread = answering(desk, lambda order: desk.rig.answer(order, "accepted"))
    given = ["project/contract.json", "--kit", "kit", "--rig", "bench", "--wait"]
    last = desk.run("assign", *given).stdout.splitlines()[-1]
    thread.join()
    watch = "thermite watch --state rig" if is_here else "thermite watch"
    assert last.endswith(f"; follow it with {watch}")


def test_a_refused_assignment_ends_with_4_and_the_rigs_words(desk: Desk) -> None:
    thread = answering(
        desk,
        lambda order: desk.rig.answer(
            order, "refused", code="commit_missing", message="it lacks x"
        ),
    )
    told = desk.assign("--wait", code=4)
    thread.join()
    assert told["error"] == "commit_missing: it lacks x"
    assert told["exit"] == 4


def test_a_loss_is_said_with_the_command_that_begins_anew(desk: Desk) -> None:
    """It was a line of the how-to alone, for each sender to put together by hand."""
    rig = desk.rig
    lost = partial(rig.answer, outcome="refused", code="ledger_rolled_back", message="x")
    for answer, code in ((partial(rig.answer, outcome="accepted"), 0), (lost, 4)):
        thread = answering(desk, answer)
        desk.assign("--wait", code=code)
        thread.join()
        for path in desk.rig.dropped(".cmd.json"):
            path.unlink()
    (warning,) = desk.told("receipts", "list")["warnings"]
    assert "refuses orders that name the checkpoint of 9 events" in warning
    begins_anew = shlex.split(warning.rpartition(": ")[2])
    subprocess.run(begins_anew, check=True)
    assert "warnings" not in desk.told("receipts", "list")
    thread = answering(desk, partial(desk.rig.answer, outcome="accepted", consistency=None))
    desk.assign("--wait")
    thread.join()
    [kept] = Path(begins_anew[-1]).glob("newest.note")
    assert "\n9\n" in kept.read_text(encoding="utf-8")


def test_no_answer_in_time_ends_with_7_and_is_noticed_later(desk: Desk) -> None:
    told = desk.assign("--wait", "--timeout-s", "0.1", code=7)
    assert "no answer in 0.1 s" in told["error"]
    listed = desk.told("receipts", "list", "--after-min", "0")
    assert told["command"][:12] in listed["warnings"][0]


def test_a_dry_run_needs_no_key_and_sends_nothing(desk: Desk) -> None:
    (desk.folder / "control" / "keys" / "command.key").unlink()
    told = desk.assign("--dry-run")
    assert told["sent"] is False
    assert told["cost"]["null_runs"] == 10
    assert list((desk.rig.inbox / "new").iterdir()) == []
    assert "keygen" in desk.assign(code=3)["error"]


def test_save_writes_the_ids_back_and_the_next_order_is_the_same(desk: Desk) -> None:
    first = desk.assign("--dry-run", "--save")
    saved = json.loads((desk.folder / "project" / "contract.json").read_text(encoding="utf-8"))
    assert saved["project"]["commit"] == first["project"]["commit"]
    assert saved["project"]["kit"] == first["kit"]
    assert desk.assign("--dry-run")["contract_sha256"] == first["contract_sha256"]


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        pytest.param(("project/contract.json", "--kit", "kit", "--rig", "x"), 3, "x", id="no rig"),
        pytest.param(("none.json", "--kit", "kit", "--rig", "bench"), 3, "none.json", id="no file"),
        pytest.param(("project/contract.json", "--kit", "z", "--rig", "bench"), 3, "'z'", id="kit"),
        pytest.param(("project/contract.json", "--kit", "kit"), 2, "--rig", id="rig not said"),
        pytest.param(("project/main.c", "--kit", "kit", "--rig", "bench"), 2, ".toml", id="suffix"),
        pytest.param(
            ("project/contract.json", "--kit", "project", "--rig", "bench"), 4, "kit.json", id="4"
        ),
    ],
)
def test_every_refusal_has_its_exit_code(
    desk: Desk, args: tuple[str, ...], code: int, said: str
) -> None:
    told = desk.told("assign", *args, code=code)
    assert said in told["error"]
    assert told["exit"] == code


def test_a_rig_out_of_reach_ends_with_6(desk: Desk) -> None:
    (desk.rig.inbox / "new").rmdir()
    assert desk.assign(code=6)["exit"] == 6
    desk.rig.outbox.rename(desk.folder / "away")
    assert desk.told("receipts", "list", "--rig", "bench", code=6)["exit"] == 6
    assert desk.told("receipts", "list")["warnings"]


def test_another_fingerprint_ends_with_4(desk: Desk) -> None:
    told = desk.told(
        "rig", "add", "two", "--inbox", "rig/inbox", "--fingerprint", "SHA256:00", code=4
    )
    assert "send it nothing" in told["error"]


def test_receipts_are_verified_by_hand(desk: Desk) -> None:
    desk.assign()
    path = desk.rig.answer(desk.rig.dropped(".cmd.json")[0].read_bytes(), "accepted")
    assert desk.told("receipts", "verify", str(path), "--rig", "bench")["bad"] == 0
    path.write_bytes(path.read_bytes().replace(b"A", b"B", 1))
    assert desk.told("receipts", "verify", str(path), "--rig", "bench", code=4)["bad"] == 1


def test_a_checkpoint_is_asked_for_and_kept(desk: Desk) -> None:
    thread = answering(desk, lambda order: desk.rig.answer(order, "accepted"))
    told = desk.told("receipts", "checkpoint", "--rig", "bench")
    thread.join()
    assert told["size"] == 9
    note = desk.folder / "control" / "receipts" / desk.rig.key.public.id / "newest.note"
    assert note.read_text(encoding="utf-8") == desk.rig.note(9)


def test_the_next_trust_is_sent_whole_and_signed(desk: Desk) -> None:
    line = desk.told("key", "list")["keys"][0]
    public = (desk.folder / "control" / "keys" / "command.pub").read_text(encoding="utf-8").strip()
    new = desk.told("keygen", "new.key", "--no-passphrase", "--label", "new")["line"]
    trust = desk.folder / "trust.txt"
    trust.write_text(f"{public} role=root,command\n{new} types=stop_campaign\n", encoding="utf-8")
    told = desk.told("key", "trust", "trust.txt", "--rig", "bench", "--version", "2")
    assert told["keys"][0] == line["id"]
    key = read_key(Path(line["file"]), lambda _: b"")
    body = desk.rig.opened(key).body
    assert isinstance(body, TrustBody)
    assert body.version == 2
    assert [one.types for one in body.keys] == [None, ["stop_campaign"]]
    trust.write_text(f"{new} tpyes=stop_campaign\n", encoding="utf-8")
    wrong = desk.told("key", "trust", "trust.txt", "--rig", "bench", "--version", "3", code=2)
    assert "did you mean types?" in wrong["error"]


def test_files_are_dropped_and_listed_by_hand(desk: Desk) -> None:
    (desk.folder / "a.cmd.json").write_text("{}", encoding="utf-8")
    dropped = desk.told("inbox", "drop", "a.cmd.json", "--inbox", "rig/inbox")["files"]
    listed = desk.told("inbox", "list", "--rig", "bench")["files"]
    assert listed == [{"folder": "new", "name": dropped[0], "size": 2}]
    assert "either --rig" in desk.told("inbox", "list", code=2)["error"]


def test_a_person_reads_what_a_parser_reads(desk: Desk) -> None:
    said = desk.run(
        "assign", "project/contract.json", "--kit", "kit", "--rig", "bench", "--dry-run"
    )
    assert "this rig, graded quiet, sees ≥ 1.5 %" in said.stdout
    assert "nothing was sent" in said.stdout
    listed = desk.run("rig")
    assert listed.stdout.startswith("bench  ")
    assert "command.key  SHA256:" in desk.run("key").stdout


def test_an_estimate_needs_no_key_and_takes_the_only_rig(desk: Desk) -> None:
    told = desk.told("estimate", "project/contract.json", "--kit", "kit")
    asked = desk.told(
        "assign", "project/contract.json", "--kit", "kit", "--rig", "bench", "--dry-run"
    )
    assert told["expect"] == asked["expect"]
    assert set(told) == {"contract", "rig", "kit", "expect", "cost"}
    assert told["cost"]["run_s"] is None
    assert desk.told("inbox", "list", "--rig", "bench")["files"] == []


def test_an_estimate_without_a_rig_says_where_it_looked(desk: Desk, tmp_path: Path) -> None:
    given = ["estimate", "project/contract.json", "--kit", "kit", "--data", str(tmp_path)]
    said = desk.run(*given)
    assert said.returncode == 2
    assert f"control's folder {tmp_path} knows none: add one with thermite rig add" in said.stderr


def test_a_passphrase_is_asked_for_at_the_terminal_and_not_shown(desk: Desk) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(desk.folder)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(desk.folder)}
        argv = [sys.executable, "-m", "thermite", "keygen", "asked.key"]
        os.execve(sys.executable, argv, env)
    seen = b""
    for question in (b"New passphrase", b"The same again"):
        while question not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"correct horse\n")
    with contextlib.suppress(OSError):  # how a terminal says that the other end is closed
        while part := os.read(terminal, 4096):
            seen += part
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(terminal)
    assert b"fingerprint SHA256:" in seen
    assert b"correct horse" not in seen
    read_key(desk.folder / "asked.key", lambda _: b"correct horse")


def test_the_kits_that_are_known_by_name_are_listed(desk: Desk) -> None:
    shipped = desk.told("kit", "list")["kits"]
    assert {"name": "demo-cpu", "commit": None, "shipped": True} in shipped
    sent = desk.assign()["kit"]
    kept = {"name": sent["repo"], "commit": sent["commit"], "shipped": False}
    assert kept in desk.told("kit")["kits"]
    said = desk.run("kit", "list").stdout
    assert f"{sent['repo']}  {sent['commit']}\n" in said
    assert "demo-cpu  comes with Thermite\n" in said


def test_a_root_is_rotated_by_both_keys_and_a_key_revoked_by_the_root(desk: Desk) -> None:
    desk.told("keygen", "--no-passphrase", "keys/new.key")
    new = read_key(desk.folder / "keys" / "new.key", lambda _: b"")
    old = read_key(desk.folder / "control" / "keys" / "command.key", lambda _: b"")
    trust = desk.folder / "trust.txt"
    trust.write_text(
        f"{new.public.line('new')} role=root\n{old.public.line('old')}\n", encoding="utf-8"
    )
    root = TrustedKey(
        id=old.public.id, public=old.public.base64, label="old", roles=["root", "command"]
    )
    desk.rig.write_card(trust=Trust(version=1, keys=[root]))
    told = desk.told(
        "key",
        "rotate",
        "trust.txt",
        "--new-root",
        "keys/new.key",
        "--rig",
        "bench",
        "--version",
        "2",
    )
    assert told["keys"] == [new.public.id, old.public.id]
    desk.rig.write_card(trust=Trust(version=2, keys=read_trust(trust.read_bytes())))
    desk.told(
        *("key", "revoke", old.public.fingerprint, "--rig", "bench"),
        *("--since", "2026-01-31T12:00:00Z", "--key", "keys/new.key"),
    )
    orders = sorted(desk.rig.dropped(".cmd.json"), key=lambda path: path.stat().st_mtime_ns)
    envelopes = [json.loads(path.read_bytes()) for path in orders]
    assert [len(envelope["signatures"]) for envelope in envelopes] == [2, 1]
    body = json.loads(base64.b64decode(envelopes[1]["payload"]))["body"]
    assert body == {"key": old.public.id, "since": "2026-01-31T12:00:00Z"}


def test_a_key_that_is_none_is_not_revoked(desk: Desk) -> None:
    refused = desk.run("key", "revoke", "anna", "--rig", "bench")
    assert refused.returncode == 2
    assert "give its id of 32 hex digits" in refused.stderr
    refused = desk.run("key", "revoke", "0" * 32, "--rig", "bench", "--since", "noon")
    assert refused.returncode == 2
    assert "--since noon" in refused.stderr


def test_trust_is_sent_to_a_rig_or_given_on_it(desk: Desk) -> None:
    (desk.folder / "t.txt").write_text("x", encoding="utf-8")
    refused = desk.run("key", "trust", "t.txt", "--rig", "bench")
    assert refused.returncode == 2
    assert "give --rig and --version, or on the rig --state" in refused.stderr
