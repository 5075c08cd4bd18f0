"""From a contract's file to the rig's inbox: what arrives, and what never leaves control."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.control.assigning import body_of, checked, contract_at, sent
from tests.control.desk import LEDGER, Rig, kit_files, run_git, write
from tests.requirement import shows
from thermite.command.keyring import SigningKey
from thermite.control.home import ControlHome
from thermite.control.receipts import sent_orders
from thermite.control.rigs import known_rig
from thermite.errors import ContractError, KitError, UnreachableError, UsageError
from thermite.kit.bundle import keep_from_bundle
from thermite.kit.git import git
from thermite.schema.command import KitBundle, ModelFile, ProjectBundle
from thermite.schema.ids import CommitId

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("rig")


def test_a_rig_can_verify_and_import_what_was_sent(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path, tmp_path: Path
) -> None:
    digest = sent(home, project / "contract.json", key, kit=kit)
    command = rig.opened(key)
    assert command.digest == digest
    assert command.payload.ledger == LEDGER
    body = body_of(rig, key)
    for line in body.imports:
        assert isinstance(line, (KitBundle, ProjectBundle))
        file = rig.inbox / "new" / line.path
        assert hashlib.sha256(file.read_bytes()).hexdigest() == line.sha256
        assert file.stat().st_mode & 0o777 == 0o644
        keep_from_bundle(file, tmp_path / "kept.git", CommitId(line.commit))
    kit_line, project_line = body.imports
    assert isinstance(kit_line, KitBundle)
    assert isinstance(project_line, ProjectBundle)
    assert kit_line.repo == "tiny-cpu"
    assert kit_line.path == f"kit-{(kit_line.sha256 or '')[:12]}.bundle"
    assert project_line.path == f"project-{(project_line.sha256 or '')[:12]}.bundle"
    shown = git(tmp_path / "kept.git", "show", f"{kit_line.commit}:kit.json")
    assert json.loads(shown)["name"] == "tiny-cpu"


def test_the_signed_contract_is_complete_and_is_what_is_hashed(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path
) -> None:
    prepared = checked(home, project / "contract.json", kit=kit)
    sent(home, project / "contract.json", key, kit=kit)
    raw = bytes(body_of(rig, key).contract)
    assert hashlib.sha256(raw).hexdigest() == prepared.completed.sha256
    fields = json.loads(raw)
    assert fields["project"]["commit"] == run_git(project, "rev-parse", "HEAD")
    assert fields["project"]["kit"] == msgspec.to_builtins(prepared.completed.contract.project.kit)
    assert "judging" not in fields  # defaults are the rig's to fill in, from the same page


def test_nothing_is_written_to_the_inbox_before_everything_is_checked(
    home: ControlHome, rig: Rig, project: Path, kit: Path
) -> None:
    checked(home, project / "contract.json", kit=kit)
    assert list((rig.inbox / "new").iterdir()) == []
    assert list((rig.inbox / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param(
            {"cells": ["big"]}, "cells names cell big, which the kit does not have", id="c"
        ),
        pytest.param(
            {"objective": {"primary": {"metric": "flops"}}},
            "the objective names metric flops, which the kit does not have",
            id="metric",
        ),
    ],
)
def test_a_kit_that_does_not_fit_is_not_signed(
    home: ControlHome, project: Path, kit: Path, changed: dict[str, Any], said: str
) -> None:
    contract = contract_at(project, **changed)
    with pytest.raises(ContractError) as caught:
        checked(home, contract, kit=kit)
    assert str(caught.value).startswith("the kit does not fit the contract: ")
    assert said in str(caught.value)


def test_a_kit_for_another_target_is_not_signed(
    home: ControlHome, rig: Rig, project: Path, kit: Path
) -> None:
    rig.write_card(target="cuda-gpu")
    said = "the kit measures on cpu, and this rig's target is cuda-gpu"
    with pytest.raises(ContractError, match=said):
        checked(home, project / "contract.json", kit=kit)


def test_all_problems_of_a_contract_come_at_once(
    home: ControlHome, project: Path, kit: Path
) -> None:
    contract = contract_at(project, nam="x", budget={"attempts": "many"}, isolation="total")
    with pytest.raises(ContractError) as caught:
        checked(home, contract, kit=kit)
    for word in ("nam", "budget.attempts", "isolation"):
        assert word in str(caught.value)


def test_all_problems_of_a_kit_come_at_once(home: ControlHome, project: Path, kit: Path) -> None:
    write(kit, kit_files(target=7, cells=[]))
    with pytest.raises(KitError) as caught:
        checked(home, project / "contract.json", kit=kit)
    assert "target" in str(caught.value)
    assert "cells" in str(caught.value)


@shows("K-076")
def test_a_kit_whose_server_settings_lacks_is_not_signed(
    home: ControlHome, rig: Rig, project: Path, kit: Path
) -> None:
    write(kit, kit_files(mcp_servers=[{"name": "gbrain", "agents": ["workers"]}]))
    with pytest.raises(KitError) as caught:
        checked(home, project / "contract.json", kit=kit)
    assert str(caught.value) == (
        "The kit names the MCP server gbrain, and Settings has no server of that name. Add an MCP"
        " server named gbrain in Settings \u203a Providers, or take it out of the kit. Then start"
        " the campaign again."
    )
    assert list((rig.inbox / "new").iterdir()) == []


@shows("K-077")
def test_the_kits_servers_and_their_addresses_go_along(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path
) -> None:
    servers = [{"name": "gbrain", "agents": ["workers"]}, {"name": "local", "agents": ["planner"]}]
    write(kit, kit_files(mcp_servers=servers))
    home.settings.write_text(
        '[mcp.gbrain]\nurl = "https://mcp.example.org"\nheaders = { Authorization = "brain" }\n'
        "[mcp.local]\n",
        encoding="utf-8",
    )
    sent(home, project / "contract.json", key, kit=kit)
    body = body_of(rig, key)
    assert [server.name for server in body.mcp_servers] == ["gbrain", "local"]
    (provider,) = body.providers.mcp
    assert provider.url == "https://mcp.example.org"
    assert provider.headers == {"Authorization": "brain"}


def test_a_replay_folder_travels_as_a_commit_of_the_project(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path, tmp_path: Path
) -> None:
    proposals = tmp_path / "proposals"
    write(proposals, {"a.patch": "x", "b/files/main.c": "int main(void) { return 1; }\n"})
    workers = {"backend": "replay", "options": {"from": "../proposals"}}
    contract = contract_at(project, agents={"workers": workers})
    sent(home, contract, key, kit=kit)
    body = body_of(rig, key)
    options = json.loads(bytes(body.contract))["agents"]["workers"]["options"]
    commit, _, folder = options["from"].partition(":")
    assert folder == "proposals"
    line = next(line for line in body.imports if getattr(line, "commit", "") == commit)
    assert isinstance(line, ProjectBundle)
    assert line.repo == "matmul"
    keep_from_bundle(rig.inbox / "new" / line.path, tmp_path / "kept.git", CommitId(commit))
    names = git(tmp_path / "kept.git", "ls-tree", "-r", "--name-only", commit).decode().split()
    assert names == ["proposals/a.patch", "proposals/b/files/main.c"]
    again = checked(home, contract, kit=kit).completed.contract.agents.workers.options
    assert again == options  # the same folder, the same id


def test_a_replay_folder_that_is_not_there_is_refused_and_a_rigs_path_is_left(
    home: ControlHome, project: Path, kit: Path
) -> None:
    workers: dict[str, Any] = {"backend": "replay", "options": {"from": "nowhere"}}
    with pytest.raises(ContractError, match="is no folder"):
        checked(home, contract_at(project, agents={"workers": workers}), kit=kit)
    workers["options"] = {"from": "/on/the/rig/only"}
    whole = checked(home, contract_at(project, agents={"workers": workers}), kit=kit)
    assert whole.completed.contract.agents.workers.options == {"from": "/on/the/rig/only"}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        pytest.param({"README.md": "x"}, "holds no proposal: put <name>.patch there", id="none"),
        pytest.param({"a/notes.txt": "x"}, "holds no proposal", id="a folder of something else"),
        pytest.param(
            {"a.patch": "x", "b c/delete.txt": "x"},
            "'b c' in .* is no name of a proposal",
            id="odd",
        ),
    ],
)
def test_a_replay_folder_that_a_rig_would_refuse_is_not_sent(
    home: ControlHome, project: Path, kit: Path, tmp_path: Path, files: dict[str, str], says: str
) -> None:
    write(tmp_path / "proposals", files)
    workers = {"backend": "replay", "options": {"from": "../proposals"}}
    with pytest.raises(ContractError, match=says):
        checked(home, contract_at(project, agents={"workers": workers}), kit=kit)


@shows("K-205")
def test_model_files_go_along_by_their_hash(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path, tmp_path: Path
) -> None:
    model = tmp_path / "weights.bin"
    model.write_bytes(b"weights")
    sha256 = hashlib.sha256(b"weights").hexdigest()
    sent(home, project / "contract.json", key, kit=kit, models=(model,))
    body = body_of(rig, key)
    assert json.loads(bytes(body.contract))["models"] == [sha256]
    line = body.imports[-1]
    assert isinstance(line, ModelFile)
    assert (rig.inbox / "new" / line.path).read_bytes() == b"weights"
    other = contract_at(project, models=["ab" * 32])
    assert "ab" * 32 in checked(home, other, kit=kit).warnings[0]


def test_an_order_names_the_newest_checkpoint_and_is_remembered(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path
) -> None:
    digest = sent(home, project / "contract.json", key, kit=kit)
    after = rig.opened(key).payload.after
    assert after is not None
    assert after.size == 3
    assert [order.digest for order in sent_orders(home, known_rig(home, "bench"))] == [digest]


def test_what_to_expect_is_said_with_its_numbers(
    home: ControlHome, rig: Rig, project: Path, kit: Path
) -> None:
    said = checked(home, project / "contract.json", kit=kit).expect
    # 5 blocks of 2 arms x 1 cell; a promotion 7 of these and 11 of 2 x 2; at most 30 and 40.
    assert said == [
        (
            "this rig, graded quiet, sees ≥ 1.5 %; a promotion costs about 58 runs with their"
            " checks, a null about 10 runs with their checks; 3 attempts about 30 runs with their"
            " checks; chance that any promotion is false ≤ 1 %"
        ),
        (
            "an attempt takes at most 220 runs; 3 attempts without gain take at most 3 min, every"
            " run and check at its limit"
        ),
        "isolation any: the rig's level, none, is accepted, and every report says so",
    ]
    alone = contract_at(project, held_out_cells=[], isolation="protected")
    assert "; no held-out cells: gains are" in checked(home, alone, kit=kit).expect[0]
    apart = contract_at(project, isolation="users")
    refused = "this rig isolates with none, and the contract asks for users: it will refuse"
    assert checked(home, apart, kit=kit).expect[-1] == refused
    rig.write_card(isolation={"level": "users+namespaces"})
    assert refused not in checked(home, apart, kit=kit).expect
    rig.write_card(sees=None, grade=None)
    assert "no selftest" in checked(home, alone, kit=kit).expect[0]
    rig.write_card(sees=None)
    sight = checked(home, alone, kit=kit).expect[0]
    assert "graded quiet, has not said how small" in sight
    assert "unless noise hides every gain" in sight


SMALL = {"primary": {"metric": "seconds", "direction": "min"}, "min_effect": 0.005}


def test_what_to_expect_is_said_in_time_where_the_rig_has_timed_the_kit(
    home: ControlHome, rig: Rig, project: Path, kit: Path
) -> None:
    at = contract_at(project, budget={"attempts": 50}, objective=SMALL)
    wanted = checked(home, at, kit=kit).completed.contract.project.kit
    assert wanted is not None
    rig.write_card(timed_kit=wanted.repo, run_s=1.2)
    # A null 6.5 blocks of 2 runs, 13; 45 of these and 5 promotions of 58: 875 runs.
    assert checked(home, at, kit=kit).expect[0] == (
        "this rig, graded quiet, sees ≥ 1.5 %; a promotion costs about 70 s, a null about 16 s;"
        " 50 attempts about 18 min of judge time; chance that any promotion is false ≤ 1 %"
    )
    rig.write_card(timed_kit="another", run_s=1.2)
    assert "a null about 13 runs" in checked(home, at, kit=kit).expect[0]


def test_a_rig_out_of_reach_is_no_reason_not_to_look(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path
) -> None:
    rig.write_card(sees=None, grade=None)
    checked(home, project / "contract.json", kit=kit)
    rig.write_card()  # a selftest since, which nobody can hear of
    (rig.outbox / "rig.json").unlink()
    prepared = checked(home, project / "contract.json", kit=kit)
    assert "can't be read" in prepared.warnings[0]
    heard = f"as of {known_rig(home, 'bench').read_at}: this rig has no selftest yet"
    assert prepared.expect[0].startswith(heard)
    (rig.inbox / "new").rmdir()
    with pytest.raises(UnreachableError, match="is no inbox"):
        sent(home, project / "contract.json", key, kit=kit)


# Known faults G13
def test_the_same_assignment_twice_shares_its_bundles(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path
) -> None:
    sent(home, project / "contract.json", key, kit=kit)
    sent(home, project / "contract.json", key, kit=kit)
    assert len(rig.dropped(".cmd.json")) == 2
    assert len(rig.dropped(".bundle")) == 2


def test_other_bytes_under_a_bundles_name_are_noticed(
    home: ControlHome, rig: Rig, key: SigningKey, project: Path, kit: Path
) -> None:
    sent(home, project / "contract.json", key, kit=kit)
    rig.dropped(".bundle")[0].write_bytes(b"other")
    with pytest.raises(UsageError, match="other bytes"):
        sent(home, project / "contract.json", key, kit=kit)


def test_control_needs_nothing_on_its_path_but_git(
    home: ControlHome, project: Path, kit: Path, tmp_path: Path
) -> None:
    only_git = tmp_path / "bin"
    only_git.mkdir()
    (only_git / "git").symlink_to(shutil.which("git") or "")
    code = (
        "import sys; from pathlib import Path; from tests.control.assigning import checked;"
        "from thermite.control.home import ControlHome;"
        "print(checked(ControlHome(Path(sys.argv[1])), Path(sys.argv[2]), kit=sys.argv[3])"
        ".completed.sha256); print(sorted({'torch', 'thermite.rig', 'thermite.judge'} &"
        " set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(home.root), str(project / "contract.json"), str(kit)],
        env={"PATH": str(only_git), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[1] == "[]"


def test_a_time_to_be_improved_upwards_is_warned_of(
    home: ControlHome, project: Path, kit: Path
) -> None:
    contract = contract_at(project, objective={"primary": {"metric": "seconds"}})
    [said] = checked(home, contract, kit=kit).warnings
    assert said.startswith("objective.primary: seconds is the run's time, and direction max")
