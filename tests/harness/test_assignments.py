"""Assignments: what becomes one whole, what does not fit, and the orders of its life."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.harness.goods import Goods
from tests.harness.live import COIN, Knock, Live
from tests.requirement import shows
from thermite.harness.book import Draft
from thermite.judge.verdict.coin import commitment, order_seed
from thermite.kit.bundle import has_commit
from thermite.schema.contract import RepoAt
from thermite.schema.event import AssignmentEnded, RigSelftest
from thermite.schema.ids import CommitId
from thermite.schema.offer import Hello, Offer


@shows("K-079", "K-180", "K-184")
def test_an_assignment_is_one_transaction_with_all_it_needs(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    raw = goods.command()
    answer = import_knock.accepted(raw)
    assert staged.types() == [
        "command_accepted",
        "import_completed",
        "import_completed",
        "assignment_created",
        "mcp_servers",
    ]
    receipt = staged.receipt(answer.receipt)
    assert staged.assigned == [receipt.assignment] == [receipt.command.sha256[:32]]
    [created] = staged.events("assignment_created")
    contract = bytes(created.contract)
    assert json.loads(contract) == goods.contract()
    assert created.contract_sha256 == hashlib.sha256(contract).hexdigest()
    seed = order_seed(COIN, bytes.fromhex(receipt.command.sha256))
    assert created.order_commitment == commitment(seed).hex()
    assert staged.events("mcp_servers")[0].servers == []
    assert has_commit(staged.folder.kit_repo("tiny"), CommitId(goods.kit))
    assert has_commit(staged.folder.project_repo("matmul"), CommitId(goods.project))
    assert staged.files("new") == []
    assert staged.files("work") == []
    assert list(staged.folder.scratch.iterdir()) == []


def test_the_contract_is_hashed_as_its_bytes_stand_in_the_command(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    odd = json.dumps(goods.contract(), indent=3).encode()
    payload = staged.orders.payload(
        "assign_campaign",
        {"contract": "HERE", "imports": goods.imports, "mcp_servers": [], "providers": {"mcp": []}},
    ).replace(b'"HERE"', odd)
    import_knock.accepted(staged.orders.sealed(payload))
    [created] = staged.events("assignment_created")
    assert bytes(created.contract) == odd
    assert created.contract_sha256 == hashlib.sha256(odd).hexdigest()


def test_the_same_goods_twice_are_one_import_and_two_assignments(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    import_knock.accepted(goods.command())
    import_knock.accepted(goods.command())
    assert len(staged.events("import_completed")) == 2
    assert len(staged.events("assignment_created")) == 2


def test_an_offer_made_again_while_it_is_brought_in_is_one_assignment(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    """The supervisor is started again meanwhile, and offers what still lies there."""
    goods.pack()
    raw = goods.command()
    file = staged.orders.drop(raw)
    found = file.stat()
    offer = Offer(
        n=1,
        name=file.name,
        dev=found.st_dev,
        ino=found.st_ino,
        sha256=hashlib.sha256(raw).hexdigest(),
    )
    import_knock.send(offer, raw)
    import_knock.send(Hello(n=0))
    import_knock.send(msgspec.structs.replace(offer, n=2), raw)
    answers = [import_knock.answer(n) for n in (1, 2)]
    assert [getattr(one, "outcome", None) for one in answers] == ["accepted", "duplicate"]
    assert len(staged.events("assignment_created")) == 1
    assert len(staged.assigned) == 1


def bent(change: Callable[[Goods], None], code: str, says: str, name: str) -> object:
    return pytest.param(change, code, says, id=name)


def kit_of(**changes: object) -> Callable[[Goods], None]:
    def change(goods: Goods) -> None:
        goods.manifest.update(changes)
        goods.pack()

    return change


def contract_of(**changes: object) -> Callable[[Goods], None]:
    def change(goods: Goods) -> None:
        goods.contract_changes.update(changes)
        goods.pack()

    return change


def servers(kit: list[dict[str, Any]], assigned: list[dict[str, Any]]) -> Callable[[Goods], None]:
    def change(goods: Goods) -> None:
        if kit:
            goods.manifest["mcp_servers"] = kit
        goods.mcp_servers = assigned
        goods.pack()

    return change


def workers(**changes: object) -> Callable[[Goods], None]:
    def change(goods: Goods) -> None:
        said = goods.contract()["agents"]["workers"] | changes
        contract_of(agents={"workers": said})(goods)

    return change


def replay_of(folder: str) -> Callable[[Goods], None]:
    def change(goods: Goods) -> None:
        workers(options={"from": f"{goods.project}:{folder}"})(goods)

    return change


def mismatched(goods: Goods) -> None:
    goods.pack()
    goods.imports[0]["commit"] = "a" * 40


def no_project(goods: Goods) -> None:
    path, digest = goods.bundle("kit")
    goods.add("kit", path, digest)


GBRAIN = {"name": "gbrain", "agents": ["workers", "planner"]}
GITHUB = {
    "name": "github",
    "agents": ["workers", "advisors"],
    "tools": {"advisors": ["search_code"]},
}
START = (
    ": start the run from control, which reads the kit's servers, or give the kit's mcp_servers in"
    " the assignment"
)


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        bent(kit_of(surprise=1), "kit_bad", "surprise", "K-201 an unknown field in kit.json"),
        bent(
            kit_of(target="cuda-gpu"),
            "kit_misfit",
            "the kit does not fit the contract: the kit measures on cuda-gpu, and this rig's"
            " target is cpu",
            "K-190 another target",
        ),
        bent(
            contract_of(cells=["large"]),
            "kit_misfit",
            "the kit does not fit the contract: cells names cell large, which the kit does not"
            " have",
            "K-191 a cell that the kit lacks",
        ),
        bent(contract_of(surprise=1), "contract_bad", "surprise", "an unknown contract field"),
        bent(contract_of(campaign="research"), "contract_bad", "", "a research with a kit"),
        bent(
            contract_of(isolation="users"),
            "isolation",
            "this rig isolates with none, and the contract asks for users",
            "a level that can't be had",
        ),
        bent(
            contract_of(isolation="protected"),
            "isolation",
            "this rig isolates with none, and the contract asks for protected",
            "protection without canaries",
        ),
        bent(
            servers([GBRAIN], []),
            "mcp_servers",
            f"the kit names the MCP servers gbrain, and the assignment names none{START}",
            "K-078 servers that were left out",
        ),
        bent(
            servers([], [GITHUB]),
            "mcp_servers",
            f"the kit names the MCP servers none, and the assignment names github{START}",
            "K-078 servers that the kit has not",
        ),
        bent(
            servers([GBRAIN, GITHUB], [GITHUB | {"tools": None}, GBRAIN]),
            "mcp_servers",
            "the kit names the MCP servers gbrain (workers, planner), github (workers; advisors:"
            " search_code), and the assignment names github (workers, advisors), gbrain (workers,"
            f" planner){START}",
            "D20 K-078 other tools",
        ),
        bent(workers(backend="auto"), "not_supported", "this version has replay", "a backend"),
        bent(
            workers(options={"from": "/srv/candidates"}),
            "contract_bad",
            "takes <commit>:<folder>",
            "a folder of the rig",
        ),
        bent(
            workers(options={"from": f"{'a' * 40}:try"}),
            "commit_missing",
            "replay folder's commit",
            "a replay commit that is not there",
        ),
        bent(replay_of("nothing"), "contract_bad", "holds 0 proposals", "nothing to replay"),
        bent(
            mismatched, "import_mismatch", "project.kit", "K-181 another commit than the contract's"
        ),
        bent(no_project, "commit_missing", "is not on this rig", "no project at all"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_created(
    staged: Live,
    import_knock: Knock,
    goods: Goods,
    change: Callable[[Goods], None],
    code: str,
    says: str,
) -> None:
    change(goods)
    answer = import_knock.refused(goods.command())
    assert (answer.code, says in (answer.message or "")) == (code, True), answer
    assert staged.types() == ["command_refused"]
    assert staged.assigned == []
    assert staged.receipt(answer.receipt).code == code


def test_a_rig_that_its_selftest_found_unfit_takes_none(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    found = RigSelftest(
        mode="short",
        kit=RepoAt(repo="tiny", commit="c0"),
        nonce="17",
        order_seed="5e",
        blocks=[0.1],
        figures={},
        grade="noisy",
        sees=None,
        biased=True,
        insensitive=None,
    )
    staged.book.append(Draft(found))
    goods.pack()
    answer = import_knock.refused(goods.command())
    assert answer.code == "rig_unfit"
    assert answer.message == "this rig's selftest is biased: run thermite rig selftest"
    assert staged.types() == ["rig_selftest", "command_refused"]


@shows("K-078", "D20")
def test_servers_in_another_order_are_the_same(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    servers([GBRAIN, GITHUB], [GITHUB, GBRAIN])(goods)
    import_knock.accepted(goods.command())
    assert len(staged.events("mcp_servers")[0].servers) == 2


def test_the_end_of_an_assignment_has_its_receipt(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    answer = import_knock.accepted(goods.command())
    about = staged.receipt(answer.receipt).assignment or ""
    end = AssignmentEnded(
        reason="attempts", champion=None, gain=None, interval=None, order_seed="ab" * 32
    )
    staged.book.append(Draft(end, assignment=about))
    staged.door.ended(about)
    name = (answer.receipt or "").replace("accepted", "finished")
    receipt = staged.receipt(name)
    assert (receipt.outcome, receipt.message, receipt.assignment) == (
        "finished",
        "attempts",
        about,
    )
    orders = staged.orders
    assert (
        import_knock.refused(orders.command("pause_campaign", {"assignment": about})).code
        == "wrong_state"
    )
    kept = (staged.folder.outbox / name).read_bytes()
    (staged.folder.outbox / name).unlink()
    staged.reopen()
    staged.open()
    assert (staged.folder.outbox / name).read_bytes() == kept


def test_a_life_of_orders_about_one_assignment(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    answer = import_knock.accepted(goods.command())
    about = {"assignment": staged.receipt(answer.receipt).assignment}
    orders = staged.orders
    assert import_knock.refused(orders.command("resume_campaign", about)).code == "wrong_state"
    import_knock.accepted(orders.command("pause_campaign", about))
    assert import_knock.refused(orders.command("pause_campaign", about)).code == "wrong_state"
    import_knock.accepted(orders.command("resume_campaign", about))
    import_knock.accepted(
        orders.command("steer_campaign", about | {"text": "try tiling", "lane": 0})
    )
    for body, code in (
        ({"text": "x" * 2001, "lane": None}, "malformed_body"),
        ({"text": "x", "lane": 1}, "not_found"),
    ):
        assert import_knock.refused(orders.command("steer_campaign", about | body)).code == code
    for budget, code in (
        ({"attempts": 10}, "wrong_state"),
        ({"attempts": 60.5}, "malformed_body"),
        ({"wall_s": 10}, "wrong_state"),
        ({"prayers": 10}, "malformed_body"),
    ):
        raw = orders.command("extend_budget", about | {"budget": budget})
        assert import_knock.refused(raw).code == code
    import_knock.accepted(orders.command("extend_budget", about | {"budget": {"attempts": 60}}))
    assignment = staged.book.state.assignments[about["assignment"] or ""]
    assert assignment.contract.budget.attempts == 60
    held = about | {"attempt": 1, "action": "release"}
    assert import_knock.refused(orders.command("resolve_hold", held)).code == "not_found"
    import_knock.accepted(orders.command("stop_campaign", about | {"now": True}))
    assert assignment.stop_wanted == "now"
