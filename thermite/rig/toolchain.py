"""Which compilers this rig builds with: part of a build's key (Kit manifest, Build cache)."""

import os
import shutil
import subprocess
from typing import Final

TIMEOUT_S: Final = 30
"""How long a compiler may take to say its version (our figure)."""
IMAGE: Final = "THERMITE_IMAGE_ID"
"""The image's identity; empty is the same as unset (Kit manifest, Build cache)."""


def toolchain(path_variable: str) -> str:
    """Return the versions of cc and nvcc and the image's identity, as one text.

    Args:
        path_variable: PATH of the stages, where the compilers are looked for.
    """
    parts = [f"{tool} {_version(tool, path_variable)}" for tool in ("cc", "nvcc")]
    image = os.environ.get(IMAGE)
    return "; ".join([*parts, *([f"image {image}"] if image else [])])


def _version(tool: str, path_variable: str) -> str:
    found = shutil.which(tool, path=path_variable)
    if found is None:
        return "none"
    try:
        done = subprocess.run(
            [found, "--version"],
            env={"PATH": path_variable, "LC_ALL": "C"},
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unreadable"
    return " ".join(done.stdout.decode("utf-8", "replace").split())[:500]
