"""One command as a test sends it: what is wrong with it stands beside its bytes."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

ROOT_KINDS = {"update_trust", "revoke_key"}
BOTH, COMMAND = frozenset({"root", "command"}), frozenset({"command"})
Roles: TypeAlias = dict[str, frozenset[str]]


class Revoked(NamedTuple):
    """What `revoke_key` asks."""

    key: str
    since: str


class Trusted(NamedTuple):
    """What `update_trust` asks."""

    version: int
    roles: Roles


@dataclass(frozen=True)
class Sent:
    """spoilt, audience, when, after: the code of that step, or None where it is in order.

    body: what changes trust, None of the rest.
    """

    raw: bytes
    digest: str
    id: str
    kind: str
    issuer: str
    signers: frozenset[str]
    body: Revoked | Trusted | None
    spoilt: str | None
    audience: str | None
    when: str | None
    after: str | None
