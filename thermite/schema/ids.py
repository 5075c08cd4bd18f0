"""Ids: what each of them looks like, and the one place that tests their form."""

import re
from typing import Final, NewType

CommitId = NewType("CommitId", str)
"""A full git object id: 40 or 64 lower-case hex digits."""
TreeId = NewType("TreeId", str)
"""A full git tree id, same form as a commit id."""
Sha256 = NewType("Sha256", str)
"""64 lower-case hex digits."""
KeyId = NewType("KeyId", str)
"""First 32 hex digits of the SHA-256 of a raw Ed25519 public key."""
AssignmentId = NewType("AssignmentId", str)
"""First 32 hex digits of the digest of the command's payload (or of a local job's nonce)."""
BuildKey = NewType("BuildKey", str)
"""64 hex digits: candidate commit, kit commit, build section and toolchain, hashed."""

_FULL_ID: Final = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_HEX32: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ENTRY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def is_commit_id(text: str) -> bool:
    """Return whether the text is a full git object id (SHA-1 or SHA-256)."""
    return _FULL_ID.fullmatch(text) is not None


def is_sha256(text: str) -> bool:
    """Return whether the text is a SHA-256 in lower-case hex."""
    return _SHA256.fullmatch(text) is not None


def is_hex32(text: str) -> bool:
    """Return whether the text is a rig, ledger, key, command or assignment id (128 bits, hex)."""
    return _HEX32.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether the text is a kit, repository or contract name (Kit manifest, `name`)."""
    return _NAME.fullmatch(text) is not None


def is_entry_name(text: str) -> bool:
    """Return whether the text may name a replayed change or a known candidate (our rule)."""
    return _ENTRY.fullmatch(text) is not None
