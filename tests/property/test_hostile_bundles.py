"""Law: whatever bytes come as bundle or manifest, they are refused in words or mean one thing.

The long form: python -m tests.property.fuzz --count 10000.
"""

from pathlib import Path

import pytest

from tests.property.fuzz import manifest, sent_bundle
from tests.property.mutants import mutant, try_bundle, try_manifest
from thermite.schema.ids import CommitId

MUTANTS = 40
"""Seeded bundles in one run of the suite: each takes some tens of milliseconds."""
MANIFESTS = 1000


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> tuple[CommitId, bytes]:
    return sent_bundle(tmp_path_factory.mktemp("sent"))


def test_the_bundle_itself_is_taken(sent: tuple[CommitId, bytes], tmp_path: Path) -> None:
    commit, raw = sent
    assert try_bundle(tmp_path, raw, commit)


@pytest.mark.parametrize("seed", range(MUTANTS))
def test_a_mutant_is_refused_in_words_or_is_the_commit(
    seed: int, sent: tuple[CommitId, bytes], tmp_path: Path
) -> None:
    commit, raw = sent
    try_bundle(tmp_path, mutant(raw, seed), commit)


def test_a_manifest_of_any_bytes_is_read_or_refused_in_words() -> None:
    taken = sum(try_manifest(manifest(seed)) for seed in range(MANIFESTS))
    assert 0 < taken < MANIFESTS
