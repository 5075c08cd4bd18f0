"""The long form of the laws about hostile bytes: as many seeded bundles and manifests as asked.

    python -m tests.property.fuzz --count 10000 --seed 0

Even seeds are manifests, odd ones bundles. The first that breaks a law ends
it with the seed; nothing of it but the seed is needed to see it again.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.kit.git_author import commit_files, plain_git
from tests.kit.seed import SEED
from tests.property.mutants import bent, mutant, try_bundle, try_manifest
from thermite.kit.bundle import make_bundle
from thermite.schema.ids import CommitId


def sent_bundle(folder: Path) -> tuple[CommitId, bytes]:
    """Return a small kit's commit and its bundle, made in a folder."""
    repo = folder / "repo"
    repo.mkdir()
    plain_git(repo, "init", "-q")
    commit = CommitId(commit_files(repo, {"kit.json": b"{}", "bench/a": bytes(range(256)) * 8}))
    make_bundle(repo, commit, folder / "b")
    return commit, (folder / "b").read_bytes()


def manifest(seed: int) -> bytes:
    """Return the page's manifest with seeded faults, two times of three in its values."""
    if seed % 3 == 0:
        return mutant(json.dumps(SEED).encode(), seed)
    return json.dumps(bent(SEED, seed), ensure_ascii=False).encode()


def main(count: int, seed: int) -> int:
    """Try so many mutants from a seed on; return the exit code."""
    began = time.monotonic()
    taken = {"manifest": 0, "bundle": 0}
    with tempfile.TemporaryDirectory(prefix="thermite-fuzz-") as name:
        commit, bundle = sent_bundle(Path(name))
        for number in range(seed, seed + count):
            try:
                if number % 2:
                    with tempfile.TemporaryDirectory(dir=name) as folder:
                        bad = mutant(bundle, number)
                        taken["bundle"] += try_bundle(Path(folder), bad, commit)
                else:
                    taken["manifest"] += try_manifest(manifest(number))
            except Exception:
                sys.stderr.write(f"seed {number} breaks a law\n")
                raise
    seconds = time.monotonic() - began
    sys.stdout.write(f"{count} mutants from seed {seed} in {seconds:.0f} s; taken: {taken}\n")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    sys.exit(main(given.count, given.seed))
