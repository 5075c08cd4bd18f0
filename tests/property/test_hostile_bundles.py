"""Law: whatever bytes come as a bundle, they are refused in words or give the very commit."""

import random
from pathlib import Path

import pytest

from tests.kit.git_author import commit_files, plain_git
from thermite.errors import CommandError
from thermite.kit.bundle import has_commit, keep_from_bundle, make_bundle
from thermite.kit.git import git
from thermite.schema.ids import CommitId

MUTANTS = 40
"""Seeded mutants in one run of the suite: each takes some tens of milliseconds."""


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommitId, bytes]:
    folder = tmp_path_factory.mktemp("sent")
    repo = folder / "repo"
    repo.mkdir()
    plain_git(repo, "init", "-q")
    commit = CommitId(commit_files(repo, {"kit.json": b"{}", "bench/a": bytes(range(256)) * 8}))
    make_bundle(repo, commit, folder / "b")
    return commit, (folder / "b").read_bytes()


def mutant(raw: bytes, seed: int) -> bytes:
    """Return the bundle with one to four seeded faults."""
    chance = random.Random(seed)
    bad = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(bad))
        match chance.choice(["flip", "cut", "insert", "repeat", "zero"]):
            case "flip":
                bad[at] ^= 1 << chance.randrange(8)
            case "cut":
                del bad[at : at + chance.randint(1, 200)]
            case "insert":
                bad[at:at] = chance.randbytes(chance.randint(1, 200))
            case "repeat":
                bad[at:at] = bad[at : at + chance.randint(1, 200)]
            case _:
                bad[at : at + 8] = bytes(8)
    return bytes(bad) or b"\0"


def outcome(bundle: Path, kept: Path, commit: CommitId) -> CommandError | None:
    try:
        keep_from_bundle(bundle, kept, commit)
    except CommandError as refused:
        return refused
    return None


@pytest.mark.parametrize("seed", range(MUTANTS))
def test_a_mutant_is_refused_in_words_or_is_the_commit(
    seed: int, sent: tuple[CommitId, bytes], tmp_path: Path
) -> None:
    commit, raw = sent
    path = tmp_path / "in.bundle"
    path.write_bytes(mutant(raw, seed))
    kept = tmp_path / "rig" / "kit.git"
    refused = outcome(path, kept, commit)
    if refused is None:
        assert has_commit(kept, commit)
        assert git(kept, "cat-file", "blob", f"{commit}:kit.json") == b"{}"
        return
    assert refused.code in {"bundle_bad", "commit_missing"}
    assert str(refused).isprintable()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in.bundle", "rig"]
    assert list((tmp_path / "rig").iterdir()) == []
