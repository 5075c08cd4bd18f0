"""A stage's own view of the machine: its mounts, its queues, its network, its process ids.

Entered by the stage's process ahead of its order, while it still has privileges. The shared
folders are one empty tmpfs, bounded when the order comes, that goes with the stage's last
process; of what lies there outside, only the stage root shows, since that may lie below one of
them. The network has nothing, not even a loopback that is up, unless the stage has a gateway
there (`loopback`). Source: isolation, 4.1, Network, and rows 11, 13, 24.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from . import namespaces

SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - covered
_MIB_UNLESS_LIMITED: Final = 1024
_ENTRIES: Final = 50_000
"""As many as a work folder may have (Kit manifest, Limits)."""
_PASSABLE: Final = 0o711
_FOR_ALL: Final = 0o1777
_MOUNT: Final = namespaces.MS_NOSUID | namespaces.MS_NODEV


@dataclass(frozen=True)
class View:
    """What a stage sees of the machine where it has a view of its own.

    stage_root: the folder that stays to be seen; is_rootless: made by a plain user, from
    nothing; hidden: folders of which such a view shows nothing; shown: folders that can be read
    in this one beside the system's.
    """

    stage_root: str
    is_rootless: bool = False
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()


def enter(view: View, *, network: bool) -> None:
    """Leave the machine's view for one of this process's own, as root.

    Args:
        view: what stays to be seen; network: keep the network.

    Raises:
        OSError: the kernel refused.
    """
    flags = namespaces.NEW_MOUNTS | namespaces.NEW_IPC | namespaces.NEW_PIDS
    namespaces.unshare(flags | (0 if network else namespaces.NEW_NETWORK))
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_PRIVATE)
    kept = opened((view.stage_root, *view.shown))  # before they are covered
    covered = share("")
    for path, folder in kept.items():
        if any(path.startswith(f"{top}/") for top in covered):
            make_passable("", path)
            namespaces.mount(f"/proc/self/fd/{folder}", path, None, namespaces.MS_BIND)
            if path != view.stage_root:
                namespaces.close_to_writing(path)
        os.close(folder)


def opened(paths: Iterable[str]) -> dict[str, int]:
    """Open folders to bind them elsewhere, by path."""
    return {path: os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC) for path in paths}


def share(root: str) -> list[str]:
    """Cover the shared folders below a root with one empty tmpfs; return their paths."""
    covered = _covered(root)
    first = f"{root}{covered[0]}"
    namespaces.mount("tmpfs", first, "tmpfs", _MOUNT, _room(None))
    for number, top in enumerate(reversed(covered)):  # the first, which holds all, last
        own = f"{first}/{number}"
        os.mkdir(own)
        os.chmod(own, _FOR_ALL)
        namespaces.mount(own, f"{root}{top}", None, namespaces.MS_BIND)
    return covered


def bound(mib: int | None) -> None:
    """Bound what all shared folders of a view hold together; None: the design has no figure, ours.

    Raises:
        OSError: the kernel refused.
    """
    namespaces.mount(None, _covered("")[0], None, namespaces.MS_REMOUNT | _MOUNT, _room(mib))


def _room(mib: int | None) -> str:
    return f"mode=0755,size={mib or _MIB_UNLESS_LIMITED}m,nr_inodes={_ENTRIES}"


def _covered(root: str) -> list[str]:
    paths = {top: f"{root}{top}" for top in SHARED}
    return [top for top, path in paths.items() if os.path.isdir(path) and not os.path.islink(path)]


def make_passable(root: str, path: str) -> None:
    """Make a folder and those on the way to it, which others may pass through but not list."""
    here = root
    for part in path.strip("/").split("/"):
        here = f"{here}/{part}"
        if not os.path.isdir(here):
            os.mkdir(here)
            os.chmod(here, _PASSABLE)


def can_enter(stage_root: str) -> str | None:
    """Try in a process of its own; return in words why not, None when it works."""
    ready, said = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        try:
            enter(View(stage_root), network=False)
            bound(1)
        except OSError as error:
            os.write(said, str(error).encode("utf-8", "replace")[:500] or b"it failed")
        finally:
            os._exit(0)
    os.close(said)
    why = os.read(ready, 1000).decode("utf-8", "replace")
    os.close(ready)
    os.waitpid(pid, 0)
    return why or None
