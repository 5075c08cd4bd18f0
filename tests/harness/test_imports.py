"""Bundles, models and sources of an assignment: taken, waited for, or refused whole."""

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.goods import ENV, Goods, commit, git, sha256
from tests.harness.live import Knock, Live
from tests.orders import at
from tests.requirement import shows
from thermite.kit.bundle import has_commit
from thermite.schema.ids import CommitId
from thermite.schema.offer import FailedImport, FetchedFile, Ready, Wait
from thermite.schema.rig_settings import RigSettings


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


def test_an_import_beyond_the_rigs_limit_is_refused(staged: Live, goods: Goods) -> None:
    staged.settings = RigSettings(bundle_max_mib=1)
    staged.reopen()
    staged.open()
    goods.pack()
    path = staged.orders.new / goods.imports[0]["path"]
    path.write_bytes(bytes((1 << 20) + 1))
    goods.imports[0]["sha256"] = sha256(path)
    answer = Knock(staged).refused(goods.command())
    assert (answer.code, "more than 1 MiB" in (answer.message or "")) == ("import_too_large", True)
    assert staged.types() == ["command_refused"]
    assert not path.exists()


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


def payload_of(raw: bytes) -> bytes:
    return base64.b64decode(json.loads(raw)["payload"])
