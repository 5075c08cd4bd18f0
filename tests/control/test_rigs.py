"""Rigs: known by their key, believed as far as they signed, and never silently another one."""

import os
from pathlib import Path

import pytest

from tests.control.desk import LEDGER, Rig, make_rig
from thermite.command.keyring import SigningKey
from thermite.control.home import ControlHome, control_home
from thermite.control.rigs import RigChangedError, add_rig, known_rig, known_rigs, refreshed
from thermite.errors import NotFoundError, UnreachableError, UsageError


def test_a_rig_is_kept_as_it_spoke_of_itself(home: ControlHome, rig: Rig) -> None:
    kept = known_rig(home, "bench")
    assert kept.rig == rig.key.public.id
    assert kept.public == rig.key.public
    assert (kept.ledger, kept.target, kept.isolation) == (LEDGER, "cpu", "none")
    assert (kept.grade, kept.sees) == ("quiet", 0.015)
    assert kept.outbox == rig.outbox
    assert home.rigs.stat().st_mode & 0o777 == 0o600


def test_what_a_rig_says_next_time_replaces_what_it_said(home: ControlHome, rig: Rig) -> None:
    rig.write_card(grade=None, sees=None, target="cuda-gpu")
    kept, _ = refreshed(home, "bench")
    assert (kept.grade, kept.sees, kept.target) == (None, None, "cuda-gpu")
    assert known_rig(home, "bench") == kept


@pytest.mark.parametrize("form", ["whole", "digits", "upper", "id"])
def test_the_fingerprint_may_be_given_as_it_was_printed(
    home: ControlHome, tmp_path: Path, form: str
) -> None:
    other = make_rig(tmp_path / "other")
    public = other.key.public
    given = {
        "whole": public.fingerprint,
        "digits": f" {public.sha256}\n",
        "upper": public.sha256.upper(),
        "id": public.id,
    }[form]
    add_rig(home, "other", str(other.inbox), given)
    assert known_rig(home, "other").rig == public.id


def test_another_fingerprint_is_refused_and_nothing_kept(home: ControlHome, tmp_path: Path) -> None:
    other = make_rig(tmp_path / "other")
    for given in ("SHA256:" + "0" * 64, "", other.key.public.sha256[:31]):
        with pytest.raises(RigChangedError, match="fingerprint"):
            add_rig(home, "other", str(other.inbox), given)
    assert known_rigs(home) == {}


def test_a_rig_that_has_another_key_now_is_not_taken_for_the_same(
    home: ControlHome, rig: Rig
) -> None:
    Rig(rig.folder, SigningKey.generate()).write_card()
    with pytest.raises(RigChangedError, match=r"rigs\.toml"):
        refreshed(home, "bench")
    assert known_rig(home, "bench").rig == rig.key.public.id


def test_a_new_ledger_is_taken_up_only_with_the_fingerprint(home: ControlHome, rig: Rig) -> None:
    rig.write_card(ledger="c3" * 16)
    with pytest.raises(RigChangedError, match="now writes ledger"):
        refreshed(home, "bench")
    add_rig(home, "bench", str(rig.inbox), rig.key.public.fingerprint)
    assert known_rig(home, "bench").ledger == "c3" * 16


@pytest.mark.parametrize("raw", [b"", b"{}", b"x" * 2_000_000])
def test_what_is_no_card_is_refused_in_words(home: ControlHome, rig: Rig, raw: bytes) -> None:
    (rig.outbox / "rig.json").write_bytes(raw)
    with pytest.raises(RigChangedError, match="no signed envelope"):
        refreshed(home, "bench")


def test_a_rig_that_is_not_there_is_out_of_reach(home: ControlHome, tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="no such file"):
        add_rig(home, "gone", str(tmp_path / "nowhere" / "inbox"), None)
    with pytest.raises(NotFoundError, match=r"control knows none; .*rig add gone"):
        known_rig(home, "gone")


@pytest.mark.parametrize("inbox", ["ssh://bench/inbox", "https://bench"])
def test_an_address_is_refused_in_words(home: ControlHome, inbox: str) -> None:
    with pytest.raises(UsageError, match="mount it"):
        add_rig(home, "far", inbox, None)


def test_the_rigs_folder_is_told_from_its_inbox(home: ControlHome, rig: Rig) -> None:
    with pytest.raises(UsageError, match=f"is a rig's folder: give the inbox in it, {rig.inbox}"):
        add_rig(home, "bench", str(rig.inbox.parent), None)


@pytest.mark.parametrize("name", ["", "Bench", "a b", "../x", "x" * 65, "a\n"])
def test_a_name_that_is_none_is_refused(home: ControlHome, rig: Rig, name: str) -> None:
    with pytest.raises(UsageError, match="no name for a rig"):
        add_rig(home, name, str(rig.inbox), None)


@pytest.mark.parametrize("text", ["[rig", "rig = 7", "[rig.x]\ninbox = 1\n", "\xff"])
def test_a_spoilt_list_of_rigs_is_named(home: ControlHome, text: str) -> None:
    home.rigs.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"rigs\.toml can't be read"):
        known_rigs(home)


def test_names_and_paths_survive_the_file(home: ControlHome, tmp_path: Path) -> None:
    odd = make_rig(tmp_path / 'a "quoted" \\ folder é\x7f')
    add_rig(home, "a.b_c-d", str(odd.inbox), None)
    assert known_rig(home, "a.b_c-d").inbox == str(odd.inbox)


def test_an_inbox_that_the_list_cannot_hold_is_refused(home: ControlHome, tmp_path: Path) -> None:
    odd = make_rig(tmp_path / os.fsdecode(b"caf\xe9"))
    with pytest.raises(UsageError, match=r"caf\\udce9/inbox' is not UTF-8"):
        add_rig(home, "odd", str(odd.inbox), None)
    assert list(known_rigs(home)) == []
    (tmp_path / "link").symlink_to(odd.inbox.parent)
    add_rig(home, "odd", str(tmp_path / "link/inbox"), None)
    assert known_rig(home, "odd").outbox == tmp_path / "link/outbox"


@pytest.mark.parametrize(
    ("given", "environment", "found"),
    [
        pytest.param("/x", {"THERMITE_DATA": "/y"}, "/x", id="flag first"),
        pytest.param(None, {"THERMITE_DATA": "/y", "HOME": "/h"}, "/y", id="then the variable"),
        pytest.param(None, {"XDG_DATA_HOME": "/d", "HOME": "/h"}, "/d/thermite", id="then XDG"),
        pytest.param(
            None, {"XDG_DATA_HOME": "d", "HOME": "/h"}, "/h/.local/share/thermite", id="relative"
        ),
        pytest.param(None, {"HOME": "/h"}, "/h/.local/share/thermite", id="then HOME"),
    ],
)
def test_controls_folder_is_found(
    given: str | None, environment: dict[str, str], found: str
) -> None:
    assert control_home(Path(given) if given else None, environment).root == Path(found)


def test_no_home_is_said() -> None:
    with pytest.raises(UsageError, match="--data DIR"):
        control_home(None, {})
