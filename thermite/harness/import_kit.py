"""What a command imports -> kept repositories and model files: step 13, the files.

A bundle is hostile until git has unpacked and walked it in slot `import`, as a user of its
own and without network. Only the packs come back, into a repository that this process made,
and from there the one wanted commit is fetched by its full id into what is kept. Twice is
once: a commit that is kept is not read again. Source: ledger and signing, 3.9 "Imports".
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.errors import CommandError, InfrastructureError
from thermite.harness.folder import RigFolder
from thermite.harness.inbox import Inbox
from thermite.kit.bundle import (
    check_commit,
    check_header,
    check_unbundled,
    check_walk,
    has_commit,
    keep,
    kind_of,
    quarantine_steps,
    read_header,
)
from thermite.kit.git import ENVIRONMENT, Finished, make_repository
from thermite.rig.stages import Slot, StageCopy, Stages
from thermite.schema.command import Import, KitBundle, ModelFile, ProjectBundle
from thermite.schema.event import ImportCompleted
from thermite.schema.ids import CommitId
from thermite.schema.rig_settings import RigSettings
from thermite.schema.stage import CollectLimits, Limits, StageResult

IMPORT_S: Final = 600.0
"""Longest step of an unpacking, s: as long as a fetch may take (ledger and signing, 3.9)."""
IMPORT_RSS_MIB: Final = 4096
"""Memory of an unpacking, MiB: what a build has by default (Kit manifest, build.rss_mib)."""
USELESS: Final = frozenset({"bundle_bad", "commit_missing", "import_too_large"})
"""Refusals of a file's own bytes: no order can use it, and it does not stay in the inbox."""
_ROOM_MIB: Final = 64  # index, refs and configuration beside a pack
_PACKS: Final = "quarantine.git/objects/pack"
_CHUNK: Final = 1 << 20
_SHA1_DIGITS: Final = 40


@dataclass(frozen=True)
class Brought:
    """What one import came to; data is None when it was kept and recorded before."""

    data: ImportCompleted | None


class MissingError(Exception):
    """Some imports have no file that can be used; numbers: their places in the list.

    Args:
        code: `bundle_missing`, or `bundle_hash` when a file is there with other bytes.
    """

    def __init__(self, numbers: Sequence[int], code: str, message: str) -> None:
        super().__init__(message)
        self.numbers, self.code = numbers, code


class Importer:
    """Brings in what commands import; used by one thread."""

    def __init__(
        self, folder: RigFolder, stages: Stages, inbox: Inbox, settings: RigSettings
    ) -> None:
        self._folder, self._stages, self._inbox = folder, stages, inbox
        self._settings = settings

    def bring_in(
        self,
        imports: Sequence[Import],
        recorded: Collection[tuple[str, str, str]],
        fetched: Collection[int],
    ) -> list[ImportCompleted]:
        """Bring in each import and return the events of those that were not recorded yet.

        Args:
            recorded: (kind, repo, commit or digest) of imports that the ledger holds.
            fetched: numbers whose file the supervisor has fetched: known by their commit.

        Raises:
            MissingError: files are missing; those that are there have been brought in.
            CommandError: a file is bad; the sender's fault.
            InfrastructureError: the rig's fault; it can be tried again.
        """
        made: list[ImportCompleted] = []
        missing: list[MissingError] = []
        for number, one in enumerate(imports):
            try:
                found = self._bring_one(one, recorded, number, is_fetched=number in fetched)
            except MissingError as error:
                missing.append(error)
                continue
            if found.data is not None:
                made.append(found.data)
        if missing:
            numbers = [number for error in missing for number in error.numbers]
            raise MissingError(numbers, missing[0].code, "; ".join(map(str, missing)))
        return made

    def clear(self, imports: Sequence[Import]) -> None:
        """Remove the files of imports from the inbox."""
        for one in imports:
            self._inbox.remove_import(one.path)

    def clear_kept(self, imports: Sequence[Import]) -> None:
        """Remove the files of those imports that are on the rig, so that nobody waits for them."""
        self.clear([one for one in imports if self._is_kept(one)])

    def _bring_one(
        self,
        one: Import,
        recorded: Collection[tuple[str, str, str]],
        number: int,
        *,
        is_fetched: bool,
    ) -> Brought:
        kept = self._is_kept(one)
        if kept and _key(one) in recorded:
            return Brought(None)
        try:
            with self._copied(one, number, is_fetched=is_fetched, may_lack=kept) as copied:
                if copied is None:
                    return Brought(_completed(one, None, 0))
                path, sha256, size = copied
                if not kept:
                    self._keep(one, path)
        except CommandError as error:
            if error.code in USELESS:
                self._inbox.remove_import(one.path)
            raise
        return Brought(_completed(one, sha256, size))

    def _is_kept(self, one: Import) -> bool:
        if isinstance(one, ModelFile):
            return (self._folder.models / one.sha256).is_file()
        return has_commit(self._repo(one), CommitId(one.commit))

    def _repo(self, one: KitBundle | ProjectBundle) -> Path:
        if isinstance(one, KitBundle):
            return self._folder.kit_repo(one.repo)
        return self._folder.project_repo(one.repo)

    @contextmanager
    def _copied(
        self, one: Import, number: int, *, is_fetched: bool, may_lack: bool
    ) -> Iterator[tuple[Path, str, int] | None]:
        """Give a copy of ours, its SHA-256 and size: the sender's file may change meanwhile.

        Raises:
            MissingError: there is no file with the right bytes.
        """
        target = self._folder.models if isinstance(one, ModelFile) else self._folder.scratch
        with tempfile.TemporaryDirectory(prefix=".import-", dir=target) as made:
            path = Path(made) / "file"
            with self._inbox.open_import(one.path) as descriptor:
                if descriptor is None:
                    if not may_lack:
                        raise MissingError([number], "bundle_missing", _lacks(one))
                    yield None
                    return
                sha256, size = _copy(descriptor, path, self._most_mib(one))
            if one.sha256 is not None and sha256 != one.sha256 and not (is_fetched or may_lack):
                raise MissingError([number], "bundle_hash", _other_bytes(one, sha256, size))
            yield path, sha256, size

    def _most_mib(self, one: Import) -> int:
        if isinstance(one, ModelFile):
            return self._settings.model_max_mib
        return self._settings.bundle_max_mib

    def _keep(self, one: Import, path: Path) -> None:
        if isinstance(one, ModelFile):
            path.chmod(0o444)
            path.rename(self._folder.models / one.sha256)
            return
        try:
            self._keep_commit(self._repo(one), path, CommitId(one.commit))
        except CommandError as error:
            raise CommandError(error.code, f"{one.path}: {error}") from None

    def _keep_commit(self, kept: Path, bundle: Path, commit: CommitId) -> None:
        with bundle.open("rb") as file:
            check_header(read_header(file))
        copied = bundle.parent / "copied.git"
        make_repository(copied, sha256=len(commit) != _SHA1_DIGITS)
        packs = self._unpack(bundle, commit)
        try:
            for pack in packs.rglob("*.pack"):
                for file_of_pack in (pack, pack.with_suffix(".idx")):
                    shutil.move(file_of_pack, copied / "objects" / "pack" / file_of_pack.name)
        finally:
            shutil.rmtree(packs)
        check_commit(kind_of(copied, commit), commit)
        keep(copied, kept, commit)

    def _unpack(self, bundle: Path, commit: CommitId) -> Path:
        """Unpack and walk a bundle in slot `import` and return a folder with its packs."""
        packs = Path(tempfile.mkdtemp(prefix=".packs-", dir=bundle.parent))
        with self._stages.copy_for("import") as copy, self._stages.slot("import") as slot:
            copy.add(bundle, "wanted.bundle")
            steps = quarantine_steps(str(copy.path / "wanted.bundle"), commit)
            for argv in steps[:-1]:
                done = self._run(slot, argv, copy)
                check_unbundled(_finished(done))
            walk = self._run(slot, steps[-1], copy)
            check_walk(walk.exit_code, _text(walk.stdout + walk.stderr), commit)
            collected = slot.collect([_PACKS], packs, self._collect_limits())
        if collected.problems or collected.missing:
            found = [*collected.problems, *collected.missing]
            raise CommandError("bundle_bad", f"its pack can't be taken over: {'; '.join(found)}")
        return packs

    def _run(self, slot: Slot, argv: Sequence[str], copy: StageCopy) -> StageResult:
        limits = Limits(
            timeout_s=IMPORT_S,
            rss_mib=IMPORT_RSS_MIB,
            disk_mib=2 * self._settings.bundle_max_mib + _ROOM_MIB,
            processes=64,
        )
        env = {
            **ENVIRONMENT,
            "PATH": self._stages.path_variable,
            "HOME": str(slot.folder),
            "TMPDIR": str(slot.folder),
        }
        done = slot.run(argv, env=env, limits=limits, readable=[copy])
        if done.killed is not None:
            raise CommandError(
                "bundle_bad", f"unpacking it went over the limit of {done.killed}: send less"
            )
        if done.exit_code == 127:  # noqa: PLR2004 (a shell's word for a program that is not there)
            raise InfrastructureError(f"slot import has no {argv[0]}: {_text(done.stderr)}")
        return done

    def _collect_limits(self) -> CollectLimits:
        most = (2 * self._settings.bundle_max_mib + _ROOM_MIB) << 20
        return CollectLimits(entries=32, levels=8, total_bytes=most)


def _copy(descriptor: int, target: Path, most_mib: int) -> tuple[str, int]:
    """Copy a file while hashing it, and return its SHA-256 and size in bytes.

    Raises:
        CommandError: `import_too_large`.
    """
    found, size = hashlib.sha256(), 0
    with target.open("xb") as file:
        while chunk := os.read(descriptor, _CHUNK):
            size += len(chunk)
            if size > most_mib << 20:
                raise CommandError(
                    "import_too_large",
                    f"an import has more than {most_mib} MiB, the most that this rig's rig.toml"
                    " allows: send less, or have its owner raise the limit",
                )
            found.update(chunk)
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return found.hexdigest(), size


def _key(one: Import) -> tuple[str, str, str]:
    """Return how the state names an import."""
    if isinstance(one, ModelFile):
        return "model_file", "", one.sha256
    return _kind(one), one.repo, one.commit


def _kind(one: KitBundle | ProjectBundle) -> str:
    return "kit_bundle" if isinstance(one, KitBundle) else "project_bundle"


def _completed(one: Import, sha256: str | None, size: int) -> ImportCompleted:
    if isinstance(one, ModelFile):
        return ImportCompleted(
            kind="model_file",
            repo=None,
            model=one.sha256,
            commit=None,
            sha256=one.sha256,
            bytes=size,
        )
    return ImportCompleted(
        kind=_kind(one), repo=one.repo, model=None, commit=one.commit, sha256=sha256, bytes=size
    )


def _lacks(one: Import) -> str:
    return (
        f"{one.path} is not in the inbox: drop it there (thermite inbox drop); the command waits"
        " until it expires"
    )


def _other_bytes(one: Import, sha256: str, size: int) -> str:
    return (
        f"{one.path} has {size} bytes with SHA-256 {sha256}, and the command says {one.sha256}:"
        " drop the file that was signed, or sign the command again"
    )


def _finished(done: StageResult) -> Finished:
    return Finished(done.exit_code, done.stdout, _text(done.stderr), cut=False)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
