"""The words in which refused outputs are told.

Source: Kit manifest, Outputs; the verdict's reason joins these texts with `; `.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

_ESCAPE: Final = re.compile(r"\\x([0-9a-f]{2})")

_WORDS: Final[Mapping[str, Callable[[str, int], str]]] = {
    "link": lambda path, _: f"{path} is a symbolic link",
    "pipe": lambda path, _: f"{path} is a named pipe",
    "socket": lambda path, _: f"{path} is a socket",
    "device": lambda path, _: f"{path} is a device",
    "kind": lambda path, _: f"{path} is not a plain file or folder",
    "hard_link": lambda path, links: f"{path} is a hard link: the file has {links} names",
    "owner": lambda path, uid: f"{path} belongs to another user ({uid})",
    "unreadable": lambda path, _: f"{path} can't be read",
    "path": lambda path, _: f"{path} is not a plain relative path",
    "entries": lambda _, most: f"more than {most} files and folders",
    "levels": lambda path, most: f"{path} is nested deeper than {most} levels",
    "bytes": lambda path, most: (
        f"{path} takes the outputs over {most} bytes ({most / 2**20:g} MiB)"
    ),
}


def unescaped(text: str) -> bytes:
    r"""Return the bytes that the collector wrote as ASCII: what is no \\xNN stands for itself."""
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text).encode("latin-1")


def refusal(path: str, kind: str, number: int) -> str:
    """Return the text for one refused name.

    Args:
        path: relative to the work folder, escaped to ASCII.
        kind: the collector's word for what is wrong.
        number: the limit, the number of links or the foreign uid.
    """
    return _WORDS[kind](path, number)
