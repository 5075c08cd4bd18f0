"""Spawners of this process's own.

`rig` is at level none, where nothing can reach a kill(-1). `users_rig` can, and runs inside a
pid namespace that proves itself first (tests/namespaced.py); its bystanders outlive each test.
"""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.namespaced import Namespace, possible
from tests.open_folder import open_folder
from tests.spawner.family import Tree
from thermite.rig.stages import Slot, Stages
from thermite.rig.start import spawner
from thermite.schema.stage import CollectLimits, Entry, Limits, StageResult

WIDE = CollectLimits(entries=100, levels=32, total_bytes=1 << 20)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Stages]:
    with spawner(tmp_path / "rig", isolation="none") as stages:
        yield stages


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter, as a rig's folder is."""
    with open_folder() as folder:
        yield folder


NewRig = Callable[..., AbstractContextManager[Stages]]


@pytest.fixture
def new_rig(place: Path) -> NewRig:
    """Makes rigs at level users, each in a namespace with three bystanders of its own."""
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")

    @contextlib.contextmanager
    def new(name: str = "rig", **config: Any) -> Iterator[Stages]:  # noqa: ANN401 - spawner's
        with (
            Namespace() as ns,
            spawner(
                place / name,
                within=ns.prefix,
                **{"isolation": "users", "run_dir": place / "run", **config},
            ) as stages,
        ):
            yield stages
            assert ns.bystanders() == 3

    return new


@pytest.fixture
def users_rig(new_rig: NewRig) -> Iterator[Stages]:
    with new_rig() as stages:
        yield stages


def live(uid: int) -> int:
    """How many live processes have this real or effective uid, by psutil."""
    count = 0
    for one in psutil.process_iter(["uids", "status"]):
        ids = one.info["uids"]
        if ids and uid in {ids.real, ids.effective} and one.info["status"] != "zombie":
            count += 1
    return count


class Runner:
    """Runs shell and Python text in one slot."""

    def __init__(self, rig: Stages, slot: Slot, *, timed: bool = False) -> None:
        self.rig, self.slot, self.timed = rig, slot, timed
        self._count = 0

    def argv(self, *argv: str, **limits: float | None) -> StageResult:
        return self.slot.run(
            argv,
            env={"PATH": self.rig.path_variable},
            limits=Limits(**{"timeout_s": 20, **limits}),  # type: ignore[arg-type]
            timed=self.timed,
        )

    def sh(self, text: str, **limits: float | None) -> StageResult:
        return self.argv("sh", "-c", text, **limits)

    def python(self, text: str, **limits: float | None) -> StageResult:
        self._count += 1
        name = f"program{self._count}.py"
        self.slot.place([Entry(path=name.encode(), kind="file", data=text.encode())])
        return self.argv("python3", "-I", "-S", name, **limits)


@pytest.fixture
def run(rig: Stages) -> Iterator[Runner]:
    with rig.slot("run-0") as slot:
        yield Runner(rig, slot)


@pytest.fixture
def users_run(users_rig: Stages) -> Iterator[Runner]:
    with users_rig.slot("run-0") as slot:
        yield Runner(users_rig, slot)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Callable[..., Tree]]:
    trees: list[Tree] = []

    def grown(*texts: str, **config: Any) -> Tree:  # noqa: ANN401 - SpawnerConfig's fields
        trees.append(Tree(tmp_path, *texts, **config))
        return trees[-1]

    yield grown
    for one in trees:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


@pytest.fixture
def users_tree(place: Path) -> Iterator[Callable[..., Tree]]:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    trees: list[Tree] = []
    with Namespace() as ns:

        def grown(*texts: str, **config: Any) -> Tree:  # noqa: ANN401
            config = {"isolation": "users", "run_dir": place / "run", "namespace": ns, **config}
            place.chmod(0o1777)
            trees.append(Tree(place, *texts, **config))
            return trees[-1]

        yield grown
        for one in trees:
            assert one.process.poll() is not None or ns.bystanders() == 3
            one.process.kill()  # unshare takes the whole namespace with it
            one.process.communicate()
