"""What we ship beside the code: kits and examples to start from, recorded noise.

What comes in: a name like `kits/demo-cpu`. What goes out: the folder it is in, which nobody
may write to, or the file, like `noise/loaded.json`. In a checkout that is the folder at the
top; an installed wheel carries all in here, so that the demo works without a checkout. This
room knows nothing of what is in those folders.
"""

from pathlib import Path

from thermite.errors import UsageError


def shipped(name: str) -> Path:
    """Return the folder of what is shipped as `kits/<name>` or `examples/<name>`.

    Raises:
        UsageError: nothing of that name is shipped.
    """
    there = _all()
    if name not in there:
        raise UsageError(f"nothing is shipped as {name!r}: there are {', '.join(sorted(there))}")
    return there[name]


def shipped_file(name: str) -> Path:
    """Return a file that is shipped under its own name, such as `noise/loaded.json`.

    Raises:
        UsageError: nothing of that name is shipped.
    """
    here = Path(__file__).parent
    for top in (here.parents[1], here):
        if (top / name).is_file():
            return top / name
    raise UsageError(f"nothing is shipped as {name!r}")


def shipped_names(kind: str) -> list[str]:
    """Return the names that are shipped as `kits` or as `examples`, in order."""
    return sorted(name.partition("/")[2] for name in _all() if name.startswith(f"{kind}/"))


def _all() -> dict[str, Path]:
    here = Path(__file__).parent
    return {
        f"{kind}/{folder.name}": folder
        for top in (here.parents[1], here)  # an installed wheel's own go before a neighbour's
        for kind in ("kits", "examples")
        for folder in sorted((top / kind).glob("[a-z0-9]*/"))
        if folder.is_dir()
    }
