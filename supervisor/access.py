"""The name of an access -> what git needs to use it, for one fetch.

The secret is read at the last moment and reaches git by no argument, no variable and no
configuration: a token through a memory file that git's credential helper copies, a private
key as a file of mode 0600 in the fetch's own folder, which goes when the fetch ends. Whatever
git says afterwards is told on without the server's words and without the secret.
Source: ledger and signing, 3.9 "Access".
"""

import base64
import os
import pwd
import re
import shlex
import stat
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from supervisor.address import Address, FetchError, shown
from thermite.errors import UsageError
from thermite.schema.access import (
    FOLDER,
    MOST_BYTES,
    MOST_SECRET,
    NAME_IN_COMMAND,
    Access,
    check_access,
    covers,
    read_access,
)
from thermite.schema.ids import is_name
from thermite.schema.rig_settings import RigSettings

KEY_COMMAND_S: Final = 30.0
"""Longest that `key_command` may take, s: a person at a token is not waited for (our figure)."""
_OTHERS: Final = 0o077
_SSH: Final = (
    "ssh",
    "-oBatchMode=yes",
    "-oStrictHostKeyChecking=yes",
    "-oClearAllForwardings=yes",
)
_ONLY_THIS_KEY: Final = (
    "-F/dev/null",
    "-oIdentitiesOnly=yes",
    "-oIdentityAgent=none",
    "-oPreferredAuthentications=publickey",
)

_SERVER_SAYS: Final = re.compile(r"^\s*remote:|remote error:")  # git's marks of foreign words

Started = Callable[["subprocess.Popen[bytes]"], None]


@dataclass(frozen=True)
class Login:
    """What git is given beside an address, and what must not come out again.

    settings: for `-c`; ssh: the command line for ssh; fds: descriptors that git inherits;
    hidden: texts that no message may hold.
    """

    settings: tuple[str, ...] = ()
    ssh: tuple[str, ...] = _SSH
    fds: tuple[int, ...] = ()
    hidden: tuple[str, ...] = ()

    @property
    def ssh_command(self) -> str:
        """Return the command as git wants it, for a shell.

        ssh refuses to work for a uid without an account, as the leased one of a rig with
        users is; in a user namespace of its own it takes itself for root.
        """
        return shlex.join([*(() if _has_account() else _AS_ROOT), *self.ssh])

    def told(self, words: str) -> str:
        """Return git's words without the secret, and without the server's if there is one."""
        if not self.hidden:
            return words
        text = "\n".join(line for line in words.splitlines() if not _SERVER_SAYS.search(line))
        for hidden in self.hidden:
            text = text.replace(hidden, "…")
        return text


_AS_ROOT: Final = ("unshare", "--user", "--map-root-user", "--")


class Accesses:
    """The accesses in a rig's folder, and the program that prints secrets, if there is one."""

    def __init__(self, state: Path, settings: RigSettings) -> None:
        self._folder = state / FOLDER
        self._key_command = settings.key_command

    @contextmanager
    def login(
        self, name: str | None, address: Address, work: Path, started: Started
    ) -> Iterator[Login]:
        """Yield what git needs to fetch an address with an access, None for without one.

        Args:
            name: of the access, as an order names it.
            address: what is fetched.
            work: the fetch's own folder, private.
            started: told of a process that was started and should be ended with the rig.

        Raises:
            FetchError: no such access, not for this address, or no secret to be had.
        """
        if name is None:
            yield Login()
            return
        access, secret = self.opened(name, address.url, started)
        if access.is_ssh:
            yield _ssh_login(access, secret, work)
        else:
            with _memory(f"username={access.user}\npassword={secret}\n") as fd:
                yield _https_login(access, secret, work, fd)

    def opened(self, name: str, url: str, started: Started) -> tuple[Access, str]:
        """Return an access that is for an address, and its secret.

        Raises:
            FetchError: as `login`.
        """
        access = self._find(name, url)
        if not covers(access.place, url):
            raise FetchError(
                f"access {name} of this rig is for {shown(access.place)}, and the order names"
                f" {shown(url)}: name another access, or set one for it on the rig"
            )
        secret = access.secret if access.secret is not None else self._printed(name, started)
        _check(name, access, secret)
        return access, secret

    def _find(self, name: str, url: str) -> Access:
        """Read the file of an access; what is wrong with it is the rig's owner's to mend."""
        again = f"run thermite rig access set {name[:64]} --for {shown(url)} on it"
        if not is_name(name):
            raise FetchError(f"{name[:80]!a} is no name of an access")
        try:
            raw = _private_bytes(self._folder / f"{name}.json")
        except FileNotFoundError:
            raise FetchError(f"this rig has no access named {name}: {again}") from None
        except OSError as error:
            raise FetchError(
                f"this rig can't read its access {name} ({error.strerror}): {again}"
            ) from None
        access = read_access(raw)
        if access is None:
            raise FetchError(f"this rig's access {name} holds nothing that can be used: {again}")
        return access

    def _printed(self, name: str, started: Started) -> str:
        """Return what `key_command` prints for an access; its words go nowhere."""
        if self._key_command is None:
            raise FetchError(
                f"this rig's access {name} asks key_command, and its rig.toml has none: set it"
                f" there, or run thermite rig access set {name} on it"
            )
        argv = [word.replace(NAME_IN_COMMAND, name) for word in self._key_command]
        failed = f"key_command of this rig gives no secret for access {name}"
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self._folder)},
                start_new_session=True,
            )
        except OSError as error:
            raise FetchError(f"{failed}: {error.strerror}") from None
        started(process)
        raw = _read_all(process)
        if process.returncode != 0:
            raise FetchError(f"{failed}: it ended with {process.returncode}")
        return raw.decode("utf-8", "replace").strip()


def _read_all(process: "subprocess.Popen[bytes]") -> bytes:
    """Return what a program prints; one that takes too long or prints too much is ended."""
    timer = threading.Timer(KEY_COMMAND_S, end, [process])
    timer.start()
    with process:
        try:
            raw = process.stdout.read(MOST_SECRET + 1) if process.stdout else b""
            if len(raw) > MOST_SECRET:
                end(process)
            process.wait()
        finally:
            timer.cancel()
    return raw


def end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and what it started; its session is its own."""
    if process.poll() is None:
        os.killpg(process.pid, 9)
        process.wait()


def _private_bytes(path: Path) -> bytes:
    """Return the bytes of a plain file of ours that nobody else may read.

    Raises:
        OSError: it is not; strerror says what.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "it is no plain file")
        if found.st_mode & _OTHERS:
            raise OSError(0, f"others may read it: its mode is {stat.S_IMODE(found.st_mode):04o}")
        with os.fdopen(os.dup(fd), "rb") as file:
            return file.read(MOST_BYTES + 1)[:MOST_BYTES]
    finally:
        os.close(fd)


def _check(name: str, access: Access, secret: str) -> None:
    """Refuse what git could only stumble over; the text holds nothing of it."""
    kept = f"{secret.strip()}\n" if access.is_ssh else secret
    try:
        check_access(Access(place=access.place, user=access.user, secret=kept))
    except UsageError as error:
        raise FetchError(f"this rig's access {name} can't be used: {error}") from None


def _ssh_login(access: Access, secret: str, work: Path) -> Login:
    key = _private_file(work / "key", f"{secret.strip()}\n")
    hosts = _private_file(work / "known_hosts", access.trusted or "")
    return Login(
        ssh=(*_SSH, *_ONLY_THIS_KEY, "-i", str(key), f"-oUserKnownHostsFile={hosts}"),
        hidden=tuple(line for line in secret.splitlines() if line and not line.startswith("---")),
    )


def _https_login(access: Access, secret: str, work: Path, fd: int) -> Login:
    settings = [f'credential.helper=!f() {{ test "$1" = get && cat /dev/fd/{fd}; }}; f']
    if access.trusted is not None:
        settings.append(f"http.sslCAInfo={_private_file(work / 'trusted.pem', access.trusted)}")
    pair = f"{access.user}:{secret}".encode()
    return Login(
        settings=tuple(settings),
        fds=(fd,),
        hidden=(secret, quote(secret, safe=""), base64.b64encode(pair).decode()),
    )


@contextmanager
def _memory(text: str) -> Iterator[int]:
    fd = os.memfd_create("login", os.MFD_CLOEXEC)
    try:
        os.fchmod(fd, 0o600)
        os.write(fd, text.encode())
        yield fd
    finally:
        os.close(fd)


def _private_file(path: Path, text: str) -> Path:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(text.encode())
    return path


def _has_account() -> bool:
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True
