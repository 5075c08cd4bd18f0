"""Orders whose bundles, kit or contract can't be used: refused whole, with words and no rest."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.crash.sleeper import BUILD, CHECK, CONTRACT, KIT, nap
from tests.harness.goods import Goods, commit, git, sha256
from tests.orders import at
from tests.served import ServedRig
from tests.walk.served_orders import ServedOrders


@pytest.fixture
def goods(orders: ServedOrders, tmp_path: Path) -> Goods:
    made = Goods(tmp_path / "goods", orders)
    made.manifest = json.loads(json.dumps(KIT))
    commit(made.folder / "kit", {"build.sh": BUILD, "check.sh": CHECK})
    made.project = commit(
        made.folder / "project",
        {"program.sh": nap(0.1), "try/one/files/program.sh": nap(0.05)},
    )
    made.contract_changes = {
        "cells": ["nap"],
        "objective": CONTRACT["objective"],
        "judging": CONTRACT["judging"],
    }
    return made


def nothing_is_left(rig: ServedRig, *names: str) -> None:
    """Nothing was created, and nothing lies about but what may be another order's."""
    new = rig.state_folder / "inbox" / "new"
    rig.until(lambda: sorted(path.name for path in new.iterdir()) == sorted(names))
    for name in names:
        (new / name).unlink()
    assert not rig.state.assignments
    assert not rig.state.imported
    assert list((rig.state_folder / "exports" / "scratch").iterdir()) == []


def test_a_missing_bundle_is_waited_for_and_refused_when_the_order_expires(
    rig: ServedRig, orders: ServedOrders, goods: Goods
) -> None:
    path, digest = goods.bundle("kit")
    goods.add("kit", path, digest)
    goods.add("project", "never-came.bundle", "0" * 64)
    dropped = orders.drop(goods.command(expires_at=at(0.1)))
    outbox = rig.state_folder / "outbox"
    rig.until(lambda: list(outbox.glob("*.waiting.receipt.json")))
    reason = orders.reason_of(dropped)
    assert reason["code"] == "bundle_missing"
    assert "never-came.bundle" in reason["message"]
    assert list(outbox.glob("*.waiting.receipt.json")) == []
    nothing_is_left(rig)


def test_a_bundle_with_other_bytes_than_signed_is_refused_once_it_has_settled(
    rig: ServedRig, orders: ServedOrders, goods: Goods
) -> None:
    goods.pack()
    goods.imports[1]["sha256"] = "0" * 64
    reason = orders.refused(goods.command())
    assert reason["code"] == "bundle_hash"
    assert "0" * 64 in reason["message"]
    nothing_is_left(rig, goods.imports[1]["path"])


def test_a_truncated_bundle_is_refused(rig: ServedRig, orders: ServedOrders, goods: Goods) -> None:
    goods.pack()
    whole = goods.folder / goods.imports[1]["path"]
    cut = goods.folder / "cut.bundle"
    cut.write_bytes(whole.read_bytes()[:-40])
    orders.drop(cut.read_bytes(), whole.name)
    goods.imports[1]["sha256"] = sha256(cut)
    reason = orders.refused(goods.command())
    assert reason["code"] == "bundle_bad"
    assert whole.name in reason["message"]
    nothing_is_left(rig)


def test_a_bundle_that_needs_more_than_it_brings_is_refused_with_what_it_needs(
    rig: ServedRig, orders: ServedOrders, goods: Goods
) -> None:
    parent = goods.project
    goods.project = commit(goods.folder / "project", {"more.txt": "more\n"})
    goods.pack()
    name = goods.imports[1]["path"]
    git(goods.folder / "project", "bundle", "create", "-q", "thin.bundle", f"{parent}..main")
    thin = goods.folder / "project" / "thin.bundle"
    orders.drop(thin.read_bytes(), name)
    goods.imports[1]["sha256"] = sha256(thin)
    reason = orders.refused(goods.command())
    assert reason["code"] == "bundle_bad"
    assert parent in reason["message"]
    assert "send a full bundle" in reason["message"]
    nothing_is_left(rig)


def test_a_bundle_of_a_shallow_clone_is_refused(
    rig: ServedRig, orders: ServedOrders, goods: Goods
) -> None:
    parent = goods.project
    goods.project = commit(goods.folder / "project", {"more.txt": "more\n"})
    goods.pack()
    shallow = goods.folder / "shallow"
    git(goods.folder, "clone", "-q", "--depth=1", f"file://{goods.folder}/project", str(shallow))
    git(shallow, "bundle", "create", "-q", "shallow.bundle", "main")
    goods_name = goods.imports[1]["path"]
    orders.drop((shallow / "shallow.bundle").read_bytes(), goods_name)
    goods.imports[1]["sha256"] = sha256(shallow / "shallow.bundle")
    reason = orders.refused(goods.command())
    assert reason["code"] == "bundle_bad"
    assert parent in reason["message"]
    assert "send a full bundle" in reason["message"]
    nothing_is_left(rig)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param({"target": 3}, "target", id="wrong kind"),
        pytest.param({"surprise": 1}, "surprise", id="unknown field"),
        pytest.param({"cells": None}, "cells", id="no cells"),
    ],
)
def test_an_invalid_manifest_is_refused_with_its_problems(
    rig: ServedRig, orders: ServedOrders, goods: Goods, change: dict[str, Any], words: str
) -> None:
    goods.manifest |= change
    goods.pack()
    reason = orders.refused(goods.command())
    assert reason["code"] == "kit_bad"
    assert words in reason["message"]
    nothing_is_left(rig)


def test_a_contract_that_does_not_fit_is_refused_with_every_problem(
    rig: ServedRig, orders: ServedOrders, goods: Goods
) -> None:
    goods.contract_changes |= {
        "cells": ["night"],
        "objective": {"primary": {"metric": "dreams"}},
    }
    goods.pack()
    reason = orders.refused(goods.command())
    assert reason["code"] == "kit_misfit"
    assert reason["message"].startswith("the kit does not fit the contract: ")
    assert "cells names cell night, which the kit does not have" in reason["message"]
    assert "the objective names metric dreams, which the kit does not have" in reason["message"]
    nothing_is_left(rig)


def test_a_contract_that_is_none_is_refused_with_every_problem(
    rig: ServedRig, orders: ServedOrders, goods: Goods
) -> None:
    goods.contract_changes |= {"cells": [], "budget": {"attempts": 0}}
    goods.pack()
    reason = orders.refused(goods.command())
    assert reason["code"] == "contract_bad"
    assert "cells" in reason["message"]
    assert "budget.attempts" in reason["message"]
    nothing_is_left(rig, *(one["path"] for one in goods.imports))
