"""Seeded faults in a bundle's and a manifest's bytes, and what must hold of each."""

import json
import random
from pathlib import Path
from typing import Any

from thermite.errors import CommandError
from thermite.kit.bundle import has_commit, keep_from_bundle
from thermite.kit.git import git
from thermite.kit.manifest import read_manifest
from thermite.schema.ids import CommitId
from thermite.schema.kit import Kit

DEEPER = 0.7
"""How often a fault goes on into an object or a list instead of replacing it."""
KINDS = ("flip", "cut", "insert", "repeat", "zero", "swap")
TOKENS = (
    *(b"null", b"true", b"1e999", b"NaN", b"{", b"}", b"[", b"]", b'"', b",", b":", b"-", b"0.1"),
    *(b"9" * 400, b"\xef\xbb\xbf", b"\xff", b"\\ud800", b"\x00", b"../", b"[" * 200),
)
"""What a parser stumbles over, put in among random bytes."""


def mutant(raw: bytes, seed: int) -> bytes:
    """Return bytes with one to four seeded faults."""
    chance = random.Random(seed)
    bad = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(bad) or 1)
        length = chance.randint(1, 200)
        match chance.choice(KINDS):
            case "flip" if bad:
                bad[at] ^= 1 << chance.randrange(8)
            case "cut":
                del bad[at : at + length]
            case "insert":
                bad[at:at] = chance.choice([chance.randbytes(length), chance.choice(TOKENS)])
            case "repeat":
                bad[at:at] = bad[at : at + length]
            case "swap":
                bad[at : at + length] = chance.choice(TOKENS)
            case _:
                bad[at : at + 8] = bytes(8)
    return bytes(bad) or b"\0"


def bent(whole: object, seed: int) -> object:
    """Return a document with one to three values, seeded, replaced, renamed, doubled or gone."""
    chance = random.Random(seed)
    made = json.loads(json.dumps(whole))
    for _ in range(chance.randint(1, 3)):
        here = made
        while True:
            inner = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not inner:
                break
            at = chance.choice(inner)
            if isinstance(here[at], dict | list) and chance.random() < DEEPER:
                here = here[at]
                continue
            _bend(here, at, chance)
            break
    return made


def _bend(here: Any, at: Any, chance: random.Random) -> None:  # noqa: ANN401 - JSON
    value = here[at]
    match chance.choice(["set", "gone", "rename", "wrap", "nudge"]):
        case "gone":
            del here[at]
        case "rename" if isinstance(here, dict):
            here[chance.choice([f"{at}_", "", "x" * 300, "\u202e", at.upper()])] = here.pop(at)
        case "wrap":
            here[at] = [value]
        case "nudge" if isinstance(value, str):
            here[at] = chance.choice([value + "\n", "/" + value, value + "/..", value.upper(), ""])
        case _:
            here[at] = chance.choice(
                [None, True, -1, 0, 2**53, 10**400, 0.5, "x", "{kit:y}", [], {}]
            )


def try_bundle(folder: Path, raw: bytes, commit: CommitId) -> bool:
    """Bring a bundle in, in an empty folder; return whether it was taken.

    Raises:
        AssertionError: it was taken and is not the commit, or was refused and left something.
    """
    bundle, kept = folder / "in.bundle", folder / "rig" / "kit.git"
    bundle.write_bytes(raw)
    try:
        keep_from_bundle(bundle, kept, commit)
    except CommandError as error:
        refused = error
    else:
        assert has_commit(kept, commit)
        assert git(kept, "cat-file", "blob", f"{commit}:kit.json") == b"{}"
        return True
    assert refused.code in {"bundle_bad", "commit_missing"}, refused.code
    assert str(refused).isprintable()
    assert sorted(one.name for one in folder.iterdir()) == ["in.bundle", "rig"]
    assert list((folder / "rig").iterdir()) == []
    return False


def try_manifest(raw: bytes) -> bool:
    """Read a manifest; return whether it is a kit.

    Raises:
        AssertionError: it is refused without a word, or with one that is no line of text.
    """
    found = read_manifest(raw)
    if isinstance(found, Kit):
        return True
    assert found
    assert all(str(one).isprintable() for one in found)
    return False
