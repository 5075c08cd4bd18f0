"""`thermite kit bundle`: a kit as one file that travels."""

import tempfile
from pathlib import Path

import click

from thermite.cli.arguments import KIT, PATH, TEXT
from thermite.cli.kit_check import kit_folder
from thermite.cli.output import Output, with_output
from thermite.control.bundles import SHA12
from thermite.control.sources import Source, manifest_at, resolve
from thermite.errors import UsageError
from thermite.kit.bundle import make_bundle
from thermite.kit.folder import commit_of_folder
from thermite.kit.git import is_repository


@click.command("bundle", epilog="Example: thermite kit bundle demo-cpu --out demo.bundle")
@click.argument("folder", metavar="DIR", type=KIT)
@click.option("--rev", type=TEXT, help="Another revision than HEAD, where DIR is a repository.")
@click.option("--out", "-o", type=PATH, help="Else kit-<hash>.bundle, here.")
@with_output
def command(output: Output, *, folder: Path, rev: str | None, out: Path | None) -> None:
    """Write a git bundle of a kit: a repository's HEAD, or a plain folder as it stands."""
    kit_folder(folder)
    if out is not None and out.exists():
        raise UsageError(f"{out} is there already: nothing is overwritten")
    with tempfile.TemporaryDirectory(prefix="thermite-bundle-") as scratch:
        source = _source(folder, rev, Path(scratch) / "store.git")
        kit = manifest_at(source)
        made = Path(scratch) / "made.bundle"
        sha256, size = make_bundle(source.repo, source.commit, made)
        target = out or Path(f"kit-{sha256[:SHA12]}.bundle")
        _copy_new(made, target)
    output.document(
        {
            "bundle": str(target),
            "kit": kit.name,
            "commit": source.commit,
            "sha256": sha256,
            "bytes": size,
        }
    )
    output.result(f"bundle  {target}, {size} bytes")
    output.result(f"kit     {kit.name} at {source.commit}")
    output.result(f"sha256  {sha256}")


def _source(folder: Path, rev: str | None, store: Path) -> Source:
    if is_repository(folder):
        return Source(folder, resolve(folder, rev or "HEAD"))
    if rev is not None:
        raise UsageError(f"{folder} is no git repository, so there is no revision {rev!r} in it")
    return Source(store, commit_of_folder(store, folder))


def _copy_new(source: Path, target: Path) -> None:
    """Copy a file to a place where there is none; an equal one there is as good."""
    if target.exists() and target.read_bytes() == source.read_bytes():
        return
    with target.open("xb") as file:
        file.write(source.read_bytes())
