"""Assignments with real bundles: what becomes one, what waits, and what is refused whole."""

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.goods import ENV, Goods, commit, git, sha256
from tests.harness.live import COIN, Knock, Live
from tests.orders import at
from tests.requirement import shows
from thermite.harness.book import Draft
from thermite.judge.verdict.coin import commitment, order_seed
from thermite.kit.bundle import has_commit
from thermite.schema.event import AssignmentEnded
from thermite.schema.ids import CommitId
from thermite.schema.offer import FailedImport, FetchedFile, Hello, Offer, Ready, Wait


@pytest.fixture
def goods(staged: Live, tmp_path: Path) -> Goods:
    return Goods(tmp_path / "goods", staged.orders)


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


def test_a_replay_folder_may_come_in_a_bundle_of_its_own(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    start = goods.project
    goods.project = commit(goods.folder / "project", {"more/two/files/a.c": "int a = 2;\n"})
    path, digest = goods.bundle("project")
    goods.add("project", path, digest)
    offered, goods.project = goods.project, start
    workers = {"backend": "replay", "options": {"from": f"{offered}:more"}}
    goods.contract_changes["agents"] = {"workers": workers}
    import_knock.accepted(goods.command())
    kept = staged.folder.project_repo("matmul")
    assert has_commit(kept, CommitId(start))
    assert has_commit(kept, CommitId(offered))


def test_a_missing_bundle_is_waited_for_and_then_taken(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    path, digest = goods.bundle("project")
    goods.add("project", path, digest)
    kit, kit_digest = goods.bundle("kit")
    goods.add("kit", kit, kit_digest)
    held = (staged.orders.new / kit).rename(staged.state / kit)
    raw = goods.command()
    file = staged.orders.drop(raw)
    wait = import_knock.waits(raw, file)
    assert wait.code == "bundle_missing"
    assert file.exists()
    assert "assignment_created" not in staged.types()
    [waiting] = staged.folder.outbox.glob("*.waiting.receipt.json")
    assert kit in (staged.receipt(waiting.name).message or "")
    held.rename(staged.orders.new / kit)
    answer = import_knock.offer(raw, file)
    assert getattr(answer, "outcome", None) == "accepted"
    assert list(staged.folder.outbox.glob("*.waiting.receipt.json")) == []


def test_a_bundle_that_does_not_come_in_time_is_refused(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.add("kit", "nowhere.bundle", "a" * 64)
    goods.add("project", "nowhere2.bundle", "a" * 64)
    raw = goods.command(issued_at=at(-60), not_before=at(-60), expires_at=at(-1))
    answer = import_knock.refused(raw)
    assert answer.code == "bundle_missing"
    assert staged.types() == ["command_refused"]


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


@shows("K-078", "D20")
def test_servers_in_another_order_are_the_same(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    servers([GBRAIN, GITHUB], [GITHUB, GBRAIN])(goods)
    import_knock.accepted(goods.command())
    assert len(staged.events("mcp_servers")[0].servers) == 2


def truncated(_: Goods, path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def corrupted(_: Goods, path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[-60] ^= 0xFF
    path.write_bytes(bytes(raw))


def no_bundle(_: Goods, path: Path) -> None:
    path.write_bytes(b"PK\x03\x04 not a bundle")


def thin(goods: Goods, path: Path) -> None:
    """The second commit alone: it needs the first."""
    repo = goods.folder / "project"
    git(repo, "bundle", "create", "-q", str(path), "HEAD~1..HEAD")


def shallow(goods: Goods, path: Path) -> None:
    clone = goods.folder / "shallow"
    source = (goods.folder / "project").as_uri()
    git(goods.folder, "clone", "-q", "--depth", "1", source, str(clone))
    (clone / ".git" / "shallow").unlink()  # as if it were whole
    ids = git(clone, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    pack = subprocess.run(
        ["git", "-C", str(clone), "pack-objects", "--stdout", "-q"],
        env=ENV,
        input=ids.encode(),
        capture_output=True,
        check=True,
    ).stdout
    head = f"# v2 git bundle\n{goods.project} HEAD\n\n".encode()
    path.write_bytes(head + pack)


def hostile(goods: Goods, path: Path) -> None:
    """A tree with an entry `.git`, which git's own checkout would follow."""
    repo = goods.folder / "project"
    blob = git(repo, "hash-object", "-w", "--stdin", stdin=b"[core]\n")
    entry = b"100644 .git\0" + bytes.fromhex(blob)
    tree = git(repo, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=entry)
    made = git(repo, "commit-tree", tree, "-m", "hostile")
    git(repo, "update-ref", "refs/heads/hostile", made)
    git(repo, "bundle", "create", "-q", str(path), "refs/heads/hostile")
    goods.project = made
    goods.imports[-1]["commit"] = made


def another_commit(goods: Goods, path: Path) -> None:
    other = goods.folder / "other"
    commit(other, {"b.c": "int b;\n"})
    git(other, "bundle", "create", "-q", str(path), "main")


def a_tree(goods: Goods, _: Path) -> None:
    tree = git(goods.folder / "project", "rev-parse", "HEAD^{tree}")
    goods.project = tree
    goods.imports[-1]["commit"] = tree


@pytest.mark.parametrize(
    ("harm", "code", "says"),
    [
        pytest.param(truncated, "bundle_bad", "cut off", id="truncated"),
        pytest.param(corrupted, "bundle_bad", "damaged", id="corrupted"),
        pytest.param(no_bundle, "bundle_bad", "does not start as a git bundle", id="no bundle"),
        pytest.param(thin, "bundle_bad", "send a full bundle", id="G2-thin"),
        pytest.param(shallow, "bundle_bad", "send a full bundle", id="G2-shallow"),
        pytest.param(hostile, "bundle_bad", "git fsck refuses it", id="hostile"),
        pytest.param(another_commit, "commit_missing", "is not in it", id="another commit"),
        pytest.param(a_tree, "commit_missing", "is a tree and not a commit", id="a tree"),
    ],
)
def test_a_bad_bundle_is_refused_and_nothing_of_it_stays(
    staged: Live,
    import_knock: Knock,
    goods: Goods,
    harm: Callable[[Goods, Path], None],
    code: str,
    says: str,
) -> None:
    goods.project = commit(goods.folder / "project", {"a.c": "int a = 3;\n"})
    goods.pack()
    path = staged.orders.new / goods.imports[-1]["path"]
    harm(goods, path)
    goods.imports[-1]["sha256"] = sha256(path)
    answer = import_knock.refused(goods.command())
    assert (answer.code, says in (answer.message or "")) == (code, True), answer
    assert staged.types() == ["command_refused"]
    assert not has_commit(staged.folder.project_repo("matmul"), CommitId(goods.project))
    assert list(staged.folder.scratch.iterdir()) == []


@shows("K-182")
def test_other_bytes_than_were_signed_are_looked_at_twice_and_refused(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    path = staged.orders.new / goods.imports[0]["path"]
    path.write_bytes(path.read_bytes() + b"x")
    raw = goods.command()
    file = staged.orders.drop(raw)
    assert import_knock.waits(raw, file).code == "bundle_hash"
    while isinstance(answer := import_knock.offer(raw, file), Wait):
        assert answer.code == "bundle_hash"
    assert getattr(answer, "code", None) == "bundle_hash"
    assert file.exists() is False


@pytest.mark.parametrize("kind", ["link", "hard link", "fifo", "through a linked folder"])
@shows("K-180")
def test_an_import_is_a_plain_file_inside_the_inbox(
    staged: Live, import_knock: Knock, goods: Goods, kind: str
) -> None:
    goods.pack()
    path = staged.orders.new / goods.imports[0]["path"]
    elsewhere = path.rename(staged.state / "elsewhere.bundle")
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "hard link":
        os.link(elsewhere, path)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        (staged.orders.new / "sub").symlink_to(staged.state)
        goods.imports[0]["path"] = "sub/elsewhere.bundle"
    answer = import_knock.refused(goods.command())
    assert answer.code == "import_path"
    assert staged.types() == ["command_refused"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../up.bundle", "a/../b", "x.cmd.json"])
@shows("K-180")
def test_an_import_path_that_leaves_the_inbox_is_refused_unread(
    import_knock: Knock, goods: Goods, path: str
) -> None:
    goods.pack()
    goods.imports[0]["path"] = path
    assert import_knock.refused(goods.command()).code == "import_path"


@shows("K-183")
def test_a_missing_import_with_a_source_is_asked_for_once_all_else_is_well(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    path, _ = goods.bundle("kit")
    goods.add("kit", path, "a" * 64, source={"git": "https://example.org/kit.git"})
    project, digest = goods.bundle("project")
    goods.add("project", project, digest)
    file = (staged.orders.new / path).rename(staged.state / path)
    raw = goods.command()
    wanted = import_knock.fetches(raw)
    [source] = wanted.sources
    assert (source.import_, source.path, source.commit) == (0, path, goods.kit)
    assert source.source.git == "https://example.org/kit.git"
    file.rename(staged.orders.new / path)
    digest = hashlib.sha256(payload_of(raw)).hexdigest()
    fetched = FetchedFile(import_=0, path=path, sha256=sha256(staged.orders.new / path))
    import_knock.send(Ready(n=wanted.n, digest=digest, files=[fetched], failed=[]))
    answer = import_knock.answer(wanted.n)
    assert getattr(answer, "outcome", None) == "accepted"


@shows("K-183")
def test_a_source_that_fails_three_times_is_refused(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    project, digest = goods.bundle("project")
    goods.add("project", project, digest)
    goods.add("kit", "kit.bundle", "a" * 64, source={"control": "kits/tiny"})
    raw = goods.command()
    file = staged.orders.drop(raw)
    codes = []
    for _ in range(3):
        wanted = import_knock.offer(raw, file)
        failed = FailedImport(import_=1, message="this rig has no control_url")
        import_knock.send(
            Ready(
                n=wanted.n,
                digest=hashlib.sha256(payload_of(raw)).hexdigest(),
                files=[],
                failed=[failed],
            )
        )
        codes.append(getattr(import_knock.answer(wanted.n), "code", None))
    assert codes == ["fetch_failed"] * 3
    assert not file.exists()
    assert staged.types() == ["command_refused"]


def test_nothing_is_fetched_for_a_command_of_another_rig(import_knock: Knock, goods: Goods) -> None:
    goods.add("kit", "kit.bundle", "a" * 64, source={"control": "kits/tiny"})
    assert import_knock.refused(goods.command(rig="f" * 32)).code == "wrong_rig"


@shows("K-205")
def test_a_model_file_is_kept_by_its_digest(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    model = b"weights" * 1000
    digest = hashlib.sha256(model).hexdigest()
    goods.pack()
    goods.contract_changes["models"] = [digest]
    assert import_knock.refused(goods.command()).code == "model_missing"
    goods.pack()
    goods.imports = goods.imports[2:]
    staged.orders.drop(model, "model.bin")
    goods.imports.append({"kind": "model_file", "path": "model.bin", "sha256": digest})
    import_knock.accepted(goods.command())
    kept = staged.folder.models / digest
    assert kept.read_bytes() == model
    assert kept.stat().st_mode & 0o777 == 0o444
    assert [event.kind for event in staged.events("import_completed")][-1] == "model_file"


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


def test_a_kill_before_bundles_are_removed_leaves_none(
    staged: Live, import_knock: Knock, goods: Goods
) -> None:
    goods.pack()
    raw = goods.command()
    import_knock.accepted(raw)
    for what in ("kit", "project"):
        goods.bundle(what)
    assert len(staged.files("new")) == 2
    assert import_knock.decided(raw).outcome == "duplicate"
    assert staged.files("new") == []


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


def payload_of(raw: bytes) -> bytes:
    return base64.b64decode(json.loads(raw)["payload"])
