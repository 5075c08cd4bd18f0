"""Model files and sources, from the operator's command to a verdict on a rig that is served."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.sleeper import BUILD, CHECK, CONTRACT, KIT, lay_out, nap
from tests.harness.goods import Goods, commit
from tests.requirement import shows
from tests.served import ServedRig, served
from tests.walk.served_orders import ServedOrders, orders_for
from thermite.command.receipt import open_receipt
from thermite.control.home import ControlHome
from thermite.control.rigs import known_rig
from thermite.kit.bundle import has_commit
from thermite.kit.folder import commit_of_folder
from thermite.schema.event import Run
from thermite.schema.ids import CommitId

WORD = b"right\n"
MODEL = hashlib.sha256(WORD).hexdigest()
READS = 'read word < "$2"\nsleep 0.05\necho "$word" > "$1/answer"\n'
LIES = READS.replace("$word", "wrong")
SAYS = 'test $? = 0 && echo \'{"pass": true}\' || echo \'{"pass": false, "reasons": ["no"]}\''


def place(model: str) -> dict[str, Any]:
    """The sleeper's kit, whose runs and checks are given a model file."""
    given = f"{{models:{model}}}"
    run, check = KIT["run"], KIT["check"]
    return KIT | {
        "run": run | {"command": [*run["command"], given]},
        "check": check | {"command": ["sh", "-c", f'cmp "{{out:answer}}" {given} >&2; {SAYS}']},
    }


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[ServedRig]:
    """A rig of a test's own at level none, not served yet."""
    with served(tmp_path, users=False) as one:
        yield one


@shows("K-093", "K-205")
def test_a_model_file_goes_from_the_command_line_to_runs_and_checks(alone: ServedRig) -> None:
    alone.serve_until_there()
    alone.know()
    (alone.home / "weights.bin").write_bytes(WORD)
    contract = lay_out(
        alone.home, base=READS, candidates={"01-lies": LIES}, kit=place(MODEL), contract=CONTRACT
    )
    told = alone.assign(contract, "--model", "weights.bin", "--wait")
    assert told["imports"][-1]["sha256"] == MODEL
    kept = alone.state_folder / "models" / MODEL
    assert kept.read_bytes() == WORD
    assert kept.stat().st_mode & 0o777 == 0o444
    alone.until(lambda: alone.assignment is not None and alone.assignment.status == "ended")
    assert alone.assignment is not None
    [attempt] = [one for one in alone.assignment.attempts.values() if one.verdict]
    assert attempt.verdict is not None
    assert (attempt.verdict.verdict, attempt.verdict.reasons) == ("invalid", ["no"])
    champion = [
        e.data for e in alone.events if isinstance(e.data, Run) and e.data.arm == "champion"
    ]
    assert {run.outcome for run in champion} == {"ok"}, "only the liar's answer was another one"


def sourced(orders: ServedOrders, folder: Path, source: dict[str, str]) -> Goods:
    """An order whose project was dropped, and whose kit the rig has to fetch."""
    goods = Goods(folder / "goods", orders)
    goods.manifest = json.loads(json.dumps(KIT))
    commit(goods.folder / "kit", {"build.sh": BUILD, "check.sh": CHECK})
    goods.project = commit(
        goods.folder / "project",
        {"program.sh": nap(0.05), "try/one/files/program.sh": nap(0.05, says="wrong")},
    )
    changed = ("cells", "objective", "judging")
    goods.contract_changes = {name: CONTRACT[name] for name in changed}
    path, digest = goods.bundle("project")
    goods.add("project", path, digest)
    goods.add("kit", "kit.bundle", None, source=source)
    return goods


def answered(rig: ServedRig, outcome: str) -> dict[str, str | None]:
    """Wait for the rig's receipt, and return its code and message."""
    outbox = rig.state_folder / "outbox"
    rig.until(lambda: list(outbox.glob(f"*.{outcome}.receipt.json")))
    [path] = outbox.glob(f"*.{outcome}.receipt.json")
    receipt = open_receipt(path.read_bytes(), known_rig(control(rig), "bench").public)
    return {"code": receipt.code, "message": receipt.message}


def control(rig: ServedRig) -> ControlHome:
    return ControlHome(rig.home / "control")


@shows("K-183", "K-184")
def test_a_kit_that_control_keeps_is_fetched_from_control_url(
    alone: ServedRig, tmp_path: Path
) -> None:
    settings = f'control_url = "{control(alone).root.as_uri()}"\n'
    alone.state_folder.mkdir(mode=0o700)
    (alone.state_folder / "rig.toml").write_text(settings, encoding="utf-8")
    alone.serve_until_there()
    alone.know()
    orders = orders_for(alone)
    goods = sourced(orders, tmp_path, {"control": "kits/tiny"})
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("kit.json", "build.sh", "check.sh"):
        text = (
            json.dumps(KIT) if name == "kit.json" else {"build.sh": BUILD, "check.sh": CHECK}[name]
        )
        (plain / name).write_text(text, encoding="utf-8")
    kept = commit_of_folder(control(alone).kits / "tiny.git", plain)
    goods.contract_changes["project"] = goods.contract()["project"] | {
        "kit": {"repo": "tiny", "commit": kept}
    }
    goods.imports[-1]["commit"] = kept
    orders.drop(goods.command())
    answered(alone, "accepted")
    assert has_commit(alone.state_folder / "repos" / "kit-tiny.git", CommitId(kept))
    alone.until(lambda: alone.assignment is not None and alone.assignment.status == "ended")
    assert alone.assignment is not None
    assert [one.result for one in alone.assignment.attempts.values()][:1] == ["invalid"]


@shows("K-183")
def test_a_source_on_the_rigs_own_disk_is_refused_unless_its_owner_allows_it(
    alone: ServedRig, tmp_path: Path
) -> None:
    alone.serve_until_there()
    alone.know()
    orders = orders_for(alone)
    goods = sourced(orders, tmp_path, {"git": (tmp_path / "goods" / "kit").as_uri()})
    orders.drop(goods.command())
    said = answered(alone, "refused")
    assert said["code"] == "fetch_failed"
    assert "allow_file_sources = true" in (said["message"] or "")
    assert not alone.state.assignments
    assert not (alone.state_folder / "repos" / "kit-tiny.git").exists()
