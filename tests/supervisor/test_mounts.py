"""An inbox on a mount that goes and comes back: the rescan finds every order all the same.

It waits for two rescans, which come every 5 s.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orders import Orders
from tests.requirement import shows
from tests.supervisor.harness_end import ROOT, Harness
from thermite.schema.offer import Hello, Offer, encode, name_bytes

FOLDERS = ("tmp", "new", "work", "done", "refused")


@shows("K7")
def test_orders_are_found_before_between_and_after_mounts(tmp_path: Path) -> None:
    inside = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
    mounts = [*inside, "mount", "-t", "tmpfs", "none", str(tmp_path)]
    if subprocess.run(mounts, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may mount nothing, also in a namespace of its own")
    argv = [sys.executable, "-c", f"from {__name__} import walk; walk({str(tmp_path)!r})"]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*inside, *argv], env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["bind", "underneath", "overlay"]


def walk(folder: str) -> None:
    """What the test above does, where mounts are seen by nobody else."""
    orders = Orders(Path(folder) / "rig")
    orders.make_folders()
    orders.write_trust()
    inbox = orders.state / "inbox"
    aside = Path(folder) / "aside"
    make(aside)
    mount("--bind", str(aside), str(inbox))
    harness = Harness(orders)
    harness.start()
    harness.is_up = True
    assert harness.hear()[0] == Hello(n=0)
    harness.sock.send(encode(Hello(n=1)))
    try:
        found(harness, "bind")
        unmount(inbox)
        found(harness, "underneath")
        layers = Path(folder) / "layers"
        layers.mkdir()
        mount("-t", "tmpfs", "none", str(layers))
        for name in ("lower", "upper", "scratch"):
            (layers / name).mkdir()
        make(layers / "lower")
        parts = f"lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/scratch"
        mount("-t", "overlay", "none", "-o", parts, str(inbox))
        found(harness, "overlay")
    finally:
        harness.end()


def found(harness: Harness, name: str) -> None:
    """Drop an order and see it offered."""
    harness.orders.drop(harness.orders.command(), f"{name}.cmd.json")
    message, _ = harness.offer()
    assert isinstance(message, Offer)
    assert name_bytes(message.name) == f"{name}.cmd.json".encode()
    harness.decide(message)
    sys.stdout.write(f"{name}\n")


def make(inbox: Path) -> None:
    for name in FOLDERS:
        (inbox / name).mkdir(parents=True)


def mount(*args: str) -> None:
    subprocess.run(["mount", *args], check=True)


def unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True)
