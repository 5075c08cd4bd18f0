"""Which compilers build candidates here: part of every build's key.

Source: Kit manifest, Build cache: the cc and nvcc versions, and the image's identity when
THERMITE_IMAGE_ID is set and not empty.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

_CUDA: Final = "/usr/local/cuda/bin"
"""Where NVIDIA's installers put nvcc, which is on no default PATH."""
_DRIVER: Final = Path("/proc/driver/nvidia/version")
"""What NVIDIA's kernel module says of itself; not there without one."""
_TIMEOUT_S: Final = 30
_MOST_CHARACTERS: Final = 1000


def toolchain(path: str) -> str:
    """Return one text that changes when a compiler or the image does.

    Args:
        path: PATH of the stages, where the compilers are looked for.
    """
    parts = [f"cc {_version('cc', path)}", f"nvcc {_version('nvcc', f'{path}:{_CUDA}')}"]
    image = os.environ.get("THERMITE_IMAGE_ID", "")
    if image:
        parts.append(f"image {image}")
    return "; ".join(parts)


def kernel_and_driver() -> str:
    """Return one text that changes when what times and carries out runs does."""
    kernel = f"{os.uname().sysname} {os.uname().release}"
    try:
        driver = _DRIVER.read_text(encoding="utf-8", errors="replace").partition("\n")[0]
    except OSError:
        return kernel
    return f"{kernel}; {driver[:_MOST_CHARACTERS]}"


def _version(program: str, path: str) -> str:
    """Return all that `program --version` says, in one line; `none` when there is none."""
    found = shutil.which(program, path=path)
    if found is None:
        return "none"
    try:
        said = subprocess.run(
            [found, "--version"],
            env={"PATH": path, "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return " ".join(said.decode("utf-8", "replace").split())[:_MOST_CHARACTERS]
