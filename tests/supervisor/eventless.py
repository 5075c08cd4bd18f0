"""What starts a program that gets no events for folders: only its scans find what came."""

import subprocess

import pytest

_WITHOUT_EVENTS = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"'


def without_events() -> list[str]:
    """Return what starts a program that gets no inotify, as where its limit is reached."""
    prefix = ["unshare", "--user", "--map-root-user", "sh", "-c", _WITHOUT_EVENTS, "sh"]
    tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    if tried.returncode != 0:
        pytest.skip("this kernel lets nobody make a user namespace with limits of its own")
    return prefix
