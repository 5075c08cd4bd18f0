"""What travels with an order: bundles of kit and project, and model files, each by its hash."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.control.complete import Parcel
from thermite.errors import UsageError
from thermite.kit.bundle import make_bundle
from thermite.schema.command import Import, KitBundle, ModelFile, ProjectBundle
from thermite.schema.ids import Sha256

SHA12: Final = 12
"""Digits of a hash in a file's name (ledger and signing, 3.10)."""


@dataclass(frozen=True)
class Package:
    """A file on its way into an inbox, and its line in the order; size: bytes.

    file: None for what the rig fetches by itself.
    """

    file: Path | None
    size: int
    line: Import

    @property
    def name(self) -> str:
        """The file's name in the inbox."""
        return self.line.path


def bundle_parcel(parcel: Parcel, into: Path) -> Package:
    """Write the bundle of one commit with its history, unless the rig fetches it.

    Raises:
        UsageError: the repository is shallow, or can't be read.
    """
    kind = KitBundle if parcel.kind == "kit" else ProjectBundle
    if parcel.fetched is not None:
        fetched = kind(
            path=f"{parcel.kind}-{parcel.source.commit}.bundle",
            repo=parcel.repo_id,
            commit=parcel.source.commit,
            source=parcel.fetched,
        )
        return Package(None, 0, fetched)
    file = into / f"{parcel.kind}-{parcel.source.commit}.bundle"
    sha256, size = make_bundle(parcel.source.repo, parcel.source.commit, file)
    line = kind(
        path=f"{parcel.kind}-{sha256[:SHA12]}.bundle",
        repo=parcel.repo_id,
        commit=parcel.source.commit,
        sha256=sha256,
    )
    return Package(file, size, line)


def model_package(file: Path) -> Package:
    """Hash one model file.

    Raises:
        UsageError: no plain file there.
    """
    if not file.is_file():
        raise UsageError(f"there is no model file {file}")
    with file.open("rb") as opened:
        sha256 = Sha256(hashlib.file_digest(opened, "sha256").hexdigest())
        size = os.fstat(opened.fileno()).st_size
    return Package(file, size, ModelFile(path=f"model-{sha256[:SHA12]}", sha256=sha256))
