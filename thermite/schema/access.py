"""An access of a rig: a secret that its owner put there by hand, and where it may be used.

Commands, ledger, receipts and logs name an access and never hold what is in it. An access
is bound to a place, so that no order, however well signed, sends its secret elsewhere.
Source: ledger and signing, 3.9 "Access".
"""

import base64
import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from thermite.errors import UsageError
from thermite.schema.ids import is_name
from thermite.schema.strict import Strict

FOLDER: Final = "access"
"""Below the rig's folder: `<name>.json` for each access, 0600, the supervisor's."""
MOST_BYTES: Final = 1 << 20
"""Longest file of an access: a key and a bundle of certificates have a tenth of it."""
MOST_SECRET: Final = 1 << 16
"""Longest secret, characters: the largest private keys in use have a quarter of it."""
MOST_URL: Final = 2000
"""Longest address of an MCP server, characters: what browsers and proxies agree on."""
MOST_HEADERS: Final = 16
"""Headers with secrets of one MCP server: they need one (our figure)."""
DEFAULT_USER: Final = "git"
"""What a forge is told as the user's name: the big ones look at the token only."""
NAME_IN_COMMAND: Final = "{name}"
"""Stands in `key_command` for the name of the access."""

_SCP: Final = re.compile(r"([A-Za-z0-9._-]+)@([A-Za-z0-9._-]+|\[[^\]\s]+\]):(?!//)(.*)")
_OPENSSH: Final = b"openssh-key-v1\0"
_NO_CIPHER: Final = b"\0\0\0\4none"
"""How the bytes of a key begin that ssh-keygen wrote without a passphrase (PROTOCOL.key)."""
_HERE: Final = frozenset(("http", host) for host in ("127.0.0.1", "::1", "localhost"))
"""Plain HTTP is a place only where nothing goes over a wire: an MCP server of the machine."""
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}", re.ASCII)
"""A header's name (RFC 9110, 5.6.2, token)."""
_HTTPS_OWN: Final = frozenset(
    {
        *("host", "connection", "transfer-encoding", "content-length", "content-type", "accept"),
        *("trailer", "upgrade", "expect", "proxy-authorization"),
    }
)
"""Headers that say how a request is carried: whoever sends it writes them."""
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


class Place(NamedTuple):
    """A URL taken apart as far as an access is bound to it; path: by components."""

    scheme: str
    user: str | None
    host: str
    port: int | None
    path: tuple[str, ...]


class SecretHeaders(Strict):
    """What one MCP server is sent with each request: headers with their values.

    trusted: certificates in PEM that hold instead of the machine's, as for git.
    """

    headers: dict[str, str]
    trusted: str | None = None

    def __repr__(self) -> str:
        """Return what may be shown of it."""
        return f"SecretHeaders({', '.join(self.headers)})"


class Access(Strict):
    """What a rig's owner set as one access.

    place: addresses that it may be used for begin with it; user: as whom, https only;
    secret: a password or token (https) or a private key (ssh), None where `key_command`
    prints it; trusted: certificates in PEM (https) or lines of known_hosts (ssh) that hold
    beside what the machine trusts.
    """

    place: str
    user: str = DEFAULT_USER
    secret: str | None = None
    trusted: str | None = None

    def __repr__(self) -> str:
        """Return what may be shown of it."""
        return f"Access(place={self.place!r})"

    @property
    def is_ssh(self) -> bool:
        """Whether its secret is a private key."""
        place = place_of(self.place)
        return place is not None and place.scheme == "ssh"


def read_access(raw: bytes) -> Access | None:
    """Return what the file of an access holds, or None when it holds none.

    No text tells what was read there: a message about it must hold nothing of it.
    """
    try:
        return msgspec.json.decode(raw, type=Access)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def place_of(url: str) -> Place | None:
    """Return the place that an address of git names, or None: nothing to bind an access to.

    A path with `..` or an escape is none: a server could read another path in it.
    """
    scp = _SCP.fullmatch(url)
    if scp is not None:
        url = f"ssh://{scp[1]}@{scp[2]}/{scp[3].lstrip('/')}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    path = tuple(part for part in parts.path.split("/") if part)
    odd = {".", ".."} & set(path) or re.search(r"[%\\\s?#]", url) or not url.isascii()
    if not parts.hostname or parts.password or odd:
        return None
    if parts.scheme not in {"https", "ssh"} and (parts.scheme, parts.hostname) not in _HERE:
        return None
    return Place(parts.scheme, parts.username, parts.hostname, port, path)


def has_credentials(url: str) -> bool:
    """Return whether an address holds what may be a secret: a password, or a user for https."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "@" in url
    return parts.password is not None or (parts.username is not None and parts.scheme != "ssh")


def covers(place: str, url: str) -> bool:
    """Return whether an access for a place may be used for an address."""
    bound, wanted = place_of(place), place_of(url)
    if bound is None or wanted is None:
        return False
    same_user = bound.user is None or bound.user == wanted.user
    inside = wanted.path[: len(bound.path)] == bound.path
    return same_user and bound[0] == wanted[0] and bound[2:4] == wanted[2:4] and inside


def header_problem(header: str, secret: str) -> str | None:
    """Return in words why no header of this name can carry the secret of this name."""
    if not _HEADER.fullmatch(header) or not is_name(secret):
        return (
            f"{header[:80]!a} = {secret[:80]!a} is no header with the name of a secret: the rig"
            " keeps the secret itself"
        )
    if header.lower() in _HTTPS_OWN or header.lower().startswith("mcp-"):
        return f"header {header} is the protocol's own: a secret goes into another one"
    return None


def check_access(access: Access) -> None:
    """Refuse an access that could never be used.

    Raises:
        UsageError: by whoever sets it; the text holds nothing secret.
    """
    if has_credentials(access.place):
        raise UsageError(
            "--for holds a name or token before the @: an address is shown and recorded, so give"
            " the name with --user and the token with --secret"
        )
    if place_of(access.place) is None:
        raise UsageError(
            "--for needs the address that the access is for, or the beginning of its path, as"
            " https://git.example.org/team or ssh://git@git.example.org/team"
        )
    if access.is_ssh and access.user != DEFAULT_USER:
        raise UsageError("--user is for https: write the user into the address, ssh://USER@host")
    if not re.fullmatch(r"[!-~]{1,200}", access.user):
        raise UsageError("--user needs a name without blanks, at most 200 characters")
    if access.secret is not None:
        _check_secret(access.secret, is_ssh=access.is_ssh)


def _check_secret(secret: str, *, is_ssh: bool) -> None:
    if not secret or len(secret) > MOST_SECRET:
        raise UsageError(f"a secret has 1 to {MOST_SECRET} characters, and this has {len(secret)}")
    if is_ssh and (not _PRIVATE_KEY.match(secret) or _has_passphrase(secret)):
        raise UsageError(
            "an access to an ssh address is a private key without a passphrase, in the form that"
            " ssh-keygen writes, and this "
            + ("has a passphrase" if _PRIVATE_KEY.match(secret) else "does not begin like one")
        )
    if not is_ssh and not (secret.isprintable() and secret.isascii()):
        raise UsageError(
            "a password or token is one line of printable ASCII: give a file that holds it and"
            " nothing else"
        )


def _has_passphrase(key: str) -> bool:
    """Return whether a private key is encrypted, by its words or by its cipher's name."""
    packed = "".join(line for line in key.splitlines() if not line.startswith("-"))
    try:
        raw = base64.b64decode(packed, validate=True)
    except ValueError:
        raw = b""
    ours = raw.startswith(_OPENSSH)
    return "ENCRYPTED" in key or (ours and not raw.startswith(_OPENSSH + _NO_CIPHER))


def check_key_command(command: list[str]) -> None:
    """Refuse a `key_command` that could not say which secret is asked for.

    Raises:
        UsageError: no program, or no `{name}` in it.
    """
    if not command or not command[0] or not any(NAME_IN_COMMAND in word for word in command[1:]):
        raise UsageError(
            "key_command needs a program and, in one of its arguments, {name} for the name of the"
            ' access, as ["pass", "show", "thermite/{name}"]'
        )
