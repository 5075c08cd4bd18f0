"""A build's key: what it is made from, hashed.

Source: the reference page "Kit manifest", Build cache; kit requirements K-170, K-171, D55.
"""

import hashlib

import msgspec

from thermite.schema.ids import BuildKey
from thermite.schema.kit import BuildSection


def build_key(commit: str, kit_commit: str, section: BuildSection, toolchain: str) -> BuildKey:
    """Return the key of a commit's build.

    Args:
        commit: the candidate's full id.
        section: the kit's build section; defaults enter filled in, fields sorted.
        toolchain: versions of the compilers and the image's identity, one text.
    """
    named = {
        "commit": commit,
        "kit": kit_commit,
        "build": msgspec.to_builtins(section),
        "toolchain": toolchain,
    }
    return BuildKey(hashlib.sha256(msgspec.json.encode(named, order="sorted")).hexdigest())
