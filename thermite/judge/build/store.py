"""Builds by key: read-only files with their hashes, and builds that failed.

    <folder>/<key>/record.json   outcome, reason, and each file's path, mode and SHA-256
    <folder>/<key>/files/        what the build made, folders 0555, files 0444 or 0555
    <folder>/processor           what they were made on, one line

A build is written beside its place and renamed into it, so a kill leaves none half made.
No stage ever enters here: runs get copies, and the copies are hashed before every run.
Source: the reference page "Kit manifest", Outputs and Build cache.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from thermite.errors import InfrastructureError
from thermite.schema.ids import BuildKey, Sha256
from thermite.schema.strict import Strict
from thermite.schema.verdict import REMEMBERED_BUILDS, Failure

_RECORD: Final = "record.json"
_FILES: Final = "files"
_PROCESSOR: Final = "processor"
_CHUNK: Final = 1 << 20


class StoredFile(Strict):
    r"""One file of a build; path: relative, bytes that aren't printable ASCII as `\xNN`."""

    path: str
    mode: int
    sha256: str


class StoredBuild(Strict):
    """What is known of a build: made (failure is None) or failed for good, with its reason."""

    key: str
    failure: Failure | None
    reason: str | None
    files: list[StoredFile]

    @property
    def outputs_digest(self) -> str:
        """SHA-256 over the sorted list of output path, mode and SHA-256 (judging, 3.9)."""
        lines = sorted(f"{file.path}\0{file.mode:04o}\0{file.sha256}\n" for file in self.files)
        return hashlib.sha256("".join(lines).encode("ascii")).hexdigest()


class BuildStore:
    """The harness's folder of builds; one writer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep_only_of(self, processor: str) -> str | None:
        """Throw away what another processor's compilers made; return which that was.

        They may have made it for that one alone (known faults, B3), and no key tells.
        """
        file = self._folder / _PROCESSOR
        before = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        if before == processor:
            return None
        for entry in self._folder.iterdir() if before else ():
            _remove(entry)
        file.write_text(processor, encoding="utf-8")
        return before or None

    def find(self, key: BuildKey) -> StoredBuild | None:
        """Return what is known of a key, None when nothing is.

        Raises:
            InfrastructureError: the record can't be read; somebody changed it.
        """
        try:
            raw = (self._folder / key / _RECORD).read_bytes()
            return msgspec.json.decode(raw, type=StoredBuild)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            raise InfrastructureError(f"build store tampered: {key} {_RECORD}") from None

    def files(self, key: BuildKey) -> Path:
        """Return the folder with a made build's files."""
        return self._folder / key / _FILES

    def empty_place(self, key: BuildKey) -> Path:
        """Return a fresh empty folder into which a build's outputs are collected."""
        place = self._part(key)
        _remove(place)
        (place / _FILES).mkdir(parents=True, mode=0o700)
        return place / _FILES

    def keep(self, key: BuildKey) -> StoredBuild:
        """Take what was collected in `empty_place` as the build of this key."""
        files = list(_hashed_files(self._part(key) / _FILES))
        _make_read_only(self._part(key) / _FILES)
        return self._publish(StoredBuild(key=key, failure=None, reason=None, files=files))

    def remember_failure(self, key: BuildKey, failure: Failure, reason: str) -> None:
        """Remember a build that fails each time; one ended for a limit is built again."""
        if failure in REMEMBERED_BUILDS:
            self.empty_place(key)
            self._publish(StoredBuild(key=key, failure=failure, reason=reason, files=[]))

    def _publish(self, build: StoredBuild) -> StoredBuild:
        key = BuildKey(build.key)
        record = self._part(key) / _RECORD
        with record.open("wb") as file:
            file.write(msgspec.json.encode(build))
            file.flush()
            os.fsync(file.fileno())
        _remove(self._folder / key)
        self._part(key).rename(self._folder / key)
        return build

    def _part(self, key: BuildKey) -> Path:
        return self._folder / f"{key}.part"


def verify_copy(build: StoredBuild, copy: Path) -> None:
    """Hash a build's copy again, as before every run.

    Raises:
        InfrastructureError: a file is missing, changed or new: `build store tampered`.
    """
    found = {file.path: file for file in _hashed_files(copy)}
    known = {file.path: file for file in build.files}
    paths = sorted(found.keys() | known.keys())
    changed = [path for path in paths if found.get(path) != known.get(path)]
    if changed:
        raise InfrastructureError(f"build store tampered: {build.key} {', '.join(changed)}")


def _hashed_files(folder: Path) -> Iterator[StoredFile]:
    """Yield every file below a folder with its hash; what is no plain file has none."""
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if Path(here, name).is_symlink()]
        for name in [*names, *links]:
            file = Path(here, name)
            mode = file.lstat().st_mode
            yield StoredFile(
                path=_ascii(os.fsencode(file.relative_to(folder))),
                mode=0o555 if mode & 0o111 else 0o444,
                sha256=_sha256(file) if stat.S_ISREG(mode) else "",
            )


def _sha256(file: Path) -> Sha256:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
    return Sha256(digest.hexdigest())


def _ascii(path: bytes) -> str:
    # The backslash itself is escaped too, so that two names never look the same.
    plain = set(range(0x20, 0x7F)) - set(b"\\")
    return "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in path)


def _make_read_only(folder: Path) -> None:
    for here, _, names in os.walk(folder, topdown=False):
        for name in names:
            file = Path(here, name)
            file.chmod(0o555 if file.stat().st_mode & 0o111 else 0o444)
        Path(here).chmod(0o555)


def _remove(folder: Path) -> None:
    """Remove a folder and all below it, read-only folders too."""
    for here, folders, _ in os.walk(folder):
        _unlock([Path(here), *(Path(here, name) for name in folders)])
    shutil.rmtree(folder, ignore_errors=True)


def _unlock(folders: Sequence[Path]) -> None:
    for folder in folders:
        if not folder.is_symlink():
            folder.chmod(0o700)
