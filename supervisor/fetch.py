"""A source that the harness asked for -> a bundle at the import's path in the inbox.

Only https, ssh and control's own kits are fetched, `file:` where the rig's owner allows it:
a signed command must not make a rig read its own disk. Git runs with nobody's configuration,
one allowed protocol, no redirects, no prompts, for ten minutes and a size at most; what it
brings is as hostile as what is dropped, and the harness treats it so.
Source: ledger and signing, 3.9 "Sources" and "Access".
"""

import hashlib
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from supervisor.access import Accesses, Login, end
from supervisor.address import Address, FetchError, address_of, shown
from thermite.schema.ids import is_commit_id
from thermite.schema.offer import FailedImport, FetchedFile, WantedSource, short
from thermite.schema.rig_settings import RigSettings

DEADLINE_S: Final = 600.0
"""Longest fetch of one source, s (ledger and signing, 3.9)."""
_LOOK_S: Final = 0.25  # how often size and time are looked at: a GiB arrives in longer than that
_KEPT_WORDS: Final = 600  # characters of git's last words that a message repeats
_SAID: Final = 64 << 10  # bytes of git's words that are looked at
_CHUNK: Final = 1 << 20
_REF: Final = "refs/thermite/wanted"
_CONFIG: Final = "config"
_SAFE: Final = "[safe]\n\tdirectory = *\n"
"""All that git is told by a file: repositories of others may be fetched from.

A git that serves a local one to ours is handed no `-c` and no variable of that kind.
Source: git-config(1), safe.directory.
"""


class Fetcher:
    """Fetches sources, from several threads if need be; `stop` ends what runs."""

    def __init__(
        self, inbox: Path, settings: RigSettings, *, deadline_s: float = DEADLINE_S
    ) -> None:
        self._inbox = inbox
        self._settings = settings
        self.accesses = Accesses(inbox.parent, settings)
        self._deadline_s = deadline_s
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def fetch(
        self, sources: Sequence[WantedSource]
    ) -> tuple[list[FetchedFile], list[FailedImport]]:
        """Fetch each source; what could not be had is told apart from what lies there now."""
        files: list[FetchedFile] = []
        failed: list[FailedImport] = []
        for wanted in sources:
            try:
                files.append(self._fetch_one(wanted))
            except FetchError as error:
                failed.append(FailedImport(import_=wanted.import_, message=short(str(error))))
        return files, failed

    def tidy(self) -> None:
        """Remove what a kill left of a fetch."""
        for left in (self._inbox / "tmp").glob(".fetch-*"):
            shutil.rmtree(left, ignore_errors=True)

    def started(self, process: subprocess.Popen[bytes]) -> None:
        """Take in a process that must end with the rig."""
        self._running.add(process)

    def stop(self) -> None:
        """End the fetch that runs, and start no other."""
        self._stopped = True
        for process in list(self._running):
            end(process)

    def _fetch_one(self, wanted: WantedSource) -> FetchedFile:
        if not is_commit_id(wanted.commit):
            raise FetchError(f"{short(wanted.commit)[:80]!a} is no full commit id")
        target = self._target(wanted.path)
        address = address_of(wanted.source, self._settings)
        work = self._inbox / "tmp" / f".fetch-{secrets.token_hex(8)}"
        try:
            work.mkdir(mode=0o700)
            (work / _CONFIG).write_text(_SAFE)
            with self.accesses.login(wanted.source.access, address, work, self.started) as login:
                bundle = self._bundle(work, address, login, wanted.commit)
            os.chmod(bundle, 0o644)  # noqa: PTH101 (as a dropped file; umask may say less)
            sha256 = _sha256(bundle)
            os.replace(bundle, target)  # noqa: PTH105 (one rename, nothing else)
        except OSError as error:
            raise FetchError(f"can't put a bundle at {wanted.path}: {error.strerror}") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return FetchedFile(import_=wanted.import_, path=wanted.path, sha256=sha256)

    def _target(self, path: str) -> Path:
        """Return where the bundle goes: a plain name in `new/`, never a command's."""
        if "/" in path or path.startswith(".") or "\0" in path or path.endswith(".cmd.json"):
            raise FetchError(f"{path[:80]!a} is no name for a fetched bundle: give a plain name")
        return self._inbox / "new" / path

    def _bundle(self, work: Path, address: Address, login: Login, commit: str) -> Path:
        repo, bundle = work / "fetch.git", work / "wanted.bundle"
        kind = "sha1" if len(commit) == 40 else "sha256"  # noqa: PLR2004 (hex digits of SHA-1)
        self._git(work, address, Login(), "init", "--quiet", "--bare", "--template=",
                  f"--object-format={kind}", str(repo))  # fmt: skip
        self._git(repo, address, login, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head",
                  "--no-recurse-submodules", "--no-auto-maintenance", "--end-of-options",
                  address.url, f"{commit}:{_REF}")  # fmt: skip
        self._git(repo, address, Login(), "bundle", "create", "--quiet", str(bundle), _REF)
        return bundle

    def _git(self, folder: Path, address: Address, login: Login, *args: str) -> None:
        argv = ["git", "-C", str(folder), *_settings(address.protocol, login), *args]
        said = _work_of(folder) / "said"
        with said.open("wb+") as words:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                env=_environment(folder, address.protocol, login),
                pass_fds=login.fds,
                start_new_session=True,
            )
            self._running.add(process)
            try:
                self._watch(process, said.parent)
            finally:
                end(process)
                self._running.discard(process)
            if process.returncode != 0:
                raise FetchError(
                    f"git can't fetch {shown(address.url)}: {_last_words(said, login)}"
                )

    def _watch(self, process: subprocess.Popen[bytes], work: Path) -> None:
        """Wait for the process while it stays inside time and size."""
        most = self._settings.bundle_max_mib << 20
        until = time.monotonic() + self._deadline_s
        while not self._stopped:
            try:
                process.wait(_LOOK_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() > until:
                    raise FetchError(
                        f"the fetch took longer than {self._deadline_s:g} s: send the bundle"
                    ) from None
            if _bytes_below(work) > most:
                raise FetchError(
                    f"the fetch is larger than bundle_max_mib = {self._settings.bundle_max_mib}"
                    " of this rig's rig.toml"
                )
            if process.returncode is not None:
                return
        raise FetchError("the fetch was ended: the rig stops")


def _settings(protocol: str, login: Login) -> list[str]:
    pairs = (
        "protocol.allow=never",
        f"protocol.{protocol}.allow=always",
        "http.followRedirects=false",
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "credential.helper=",
        "gc.auto=0",
        "fetch.recurseSubmodules=false",
        "submodule.recurse=false",
        "transfer.fsckObjects=false",  # fsck is the quarantine's, in a slot without network
        *login.settings,  # after the empty credential.helper, which forgets all others
    )
    return [word for pair in pairs for word in ("-c", pair)]


def _work_of(folder: Path) -> Path:
    """Return a fetch's folder, which a repository in it may be asked for, too."""
    return folder if folder.name.startswith(".fetch-") else folder.parent


def _environment(home: Path, protocol: str, login: Login) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(_work_of(home) / _CONFIG),
        "GIT_CEILING_DIRECTORIES": "/",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "GIT_SSH_COMMAND": login.ssh_command,
        "GIT_ALLOW_PROTOCOL": protocol,
        "GIT_NO_LAZY_FETCH": "1",  # else a partial clone's own settings name a program
    }


def _bytes_below(folder: Path) -> int:
    """Return the bytes of all files below a folder that only git writes to now."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118 (a hot loop)
            except FileNotFoundError:
                continue
    return total


def _last_words(said: Path, login: Login) -> str:
    """Return the end of what git said; what a login hides is taken out before anything is cut."""
    with said.open("rb") as file:
        file.seek(max(0, said.stat().st_size - _SAID))
        raw = file.read(_SAID)
    if len(raw) == _SAID:
        raw = raw.partition(b"\n")[2]  # a line whose beginning is not known
    words = " ".join(login.told(raw.decode("utf-8", "replace")).split())
    return shown_words(words[-_KEPT_WORDS:]) or "it said nothing"


def shown_words(text: str) -> str:
    """Return foreign words so that no terminal acts on them."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()
