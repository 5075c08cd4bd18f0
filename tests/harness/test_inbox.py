"""The inbox's folders: what nobody comes for does not lie about for ever."""

import json
import threading
import time
from pathlib import Path

import pytest

from thermite.harness.inbox import Inbox

DAY_S = 86400.0


@pytest.mark.parametrize(
    ("days", "left"),
    [
        pytest.param(
            7,
            ["new/a.bundle", "new/folder", "new/order.cmd.json", "tmp/half.cmd.json"],
            id="an order may wait a week",
        ),
        pytest.param(9, ["new/folder", "new/order.cmd.json"], id="no order waits longer"),
    ],
)
def test_what_nobody_came_for_is_removed_and_orders_stay(
    tmp_path: Path, days: float, left: list[str]
) -> None:
    for name in ("new", "tmp", "work", "done", "refused", "new/folder"):
        (tmp_path / name).mkdir()
    for name in ("new/a.bundle", "new/order.cmd.json", "tmp/half.cmd.json"):
        (tmp_path / name).write_text("x")
    Inbox(tmp_path).sweep(time.time() + days * DAY_S)
    found = [path for name in ("new", "tmp") for path in (tmp_path / name).iterdir()]
    assert sorted(str(path.relative_to(tmp_path)) for path in found) == left


def test_a_reason_is_whole_as_soon_as_it_has_its_name(tmp_path: Path) -> None:
    for name in ("new", "tmp", "work", "done", "refused"):
        (tmp_path / name).mkdir()
    inbox, wanted = Inbox(tmp_path), [f"{number}.cmd.json" for number in range(400)]

    def write() -> None:
        for name in wanted:
            inbox.write_reason(name, {"message": "x" * 4000})

    writing = threading.Thread(target=write)
    writing.start()
    for name in wanted:
        path = tmp_path / "refused" / f"{name}.reason.json"
        while not path.exists():
            assert writing.is_alive() or path.exists()
            time.sleep(0)
        assert json.loads(path.read_bytes())["message"] == "x" * 4000
    writing.join()
    assert len(list((tmp_path / "refused").iterdir())) == len(wanted)
