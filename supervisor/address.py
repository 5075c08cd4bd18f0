"""Which addresses a rig fetches from at all, and how they are shown.

Only https, ssh and control's own kits are fetched, `file:` where the rig's owner allows it:
a signed command must not make a rig read its own disk.
Source: ledger and signing, 3.9 "Sources".
"""

import re
from typing import Final, NamedTuple

from thermite.schema.command import Source
from thermite.schema.ids import is_name
from thermite.schema.rig_settings import RigSettings

_SCP: Final = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:[^/:].*|[A-Za-z0-9._-]+@[^/:]+:/.+")


class Address(NamedTuple):
    """What git is given: a URL, and the one protocol that it may use."""

    url: str
    protocol: str


class FetchError(Exception):
    """A source can't be fetched; the text goes to the command's sender."""


def address_of(source: Source, settings: RigSettings) -> Address:
    """Return what may be fetched for a source.

    Raises:
        FetchError: another protocol, or no control_url.
    """
    if source.control is not None:
        return _control_address(source.control, settings)
    if source.git is None:
        raise FetchError("this source names neither a git address nor a kit of control")
    protocol = _protocol(source.git)
    if protocol == "file" and not settings.allow_file_sources:
        raise FetchError(
            f"{shown(source.git)} lies on the rig's own disk: set allow_file_sources = true in"
            " rig.toml, or send the bundle"
        )
    return _checked(source.git, protocol)


def shown(url: str) -> str:
    """Return a URL for people: escaped, without a password, at most a line long."""
    without = re.sub(r"//[^/@]*@", "//…@", url)
    return without[:120].encode("ascii", "backslashreplace").decode()


def _control_address(kept: str, settings: RigSettings) -> Address:
    if settings.control_url is None:
        raise FetchError("this rig has no control_url: set it in rig.toml or send the bundle")
    place, _, name = kept.partition("/")
    if place != "kits" or not is_name(name):
        raise FetchError(f"{kept[:80]!a} is no kit of control: write kits/<name>")
    url = f"{settings.control_url.rstrip('/')}/kits/{name}.git"
    return _checked(url, _protocol(url))


def _checked(url: str, protocol: str | None) -> Address:
    printable = url.isascii() and url.isprintable() and " " not in url
    if protocol is None or url.startswith("-") or not printable:
        raise FetchError(
            f"{shown(url)} is no source: a rig fetches https and ssh addresses and kits of"
            " control; send the bundle instead"
        )
    return Address(url, protocol)


def _protocol(url: str) -> str | None:
    """Return the protocol that git would use, as far as a rig may use it at all."""
    scheme, separator, _ = url.partition("://")
    if separator:
        return scheme if scheme in {"https", "ssh", "file"} else None
    if url.startswith("/"):
        return "file"
    return "ssh" if _SCP.fullmatch(url) else None
