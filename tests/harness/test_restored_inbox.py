"""An inbox that comes back from a backup brings nothing about twice."""

import shutil
from pathlib import Path

from tests.harness.live import Live, until
from tests.requirement import shows


@shows("K4")
def test_orders_that_a_backup_brings_back_get_their_first_receipts(
    live: Live, tmp_path: Path
) -> None:
    orders = [live.orders.command() for _ in range(3)]
    for number, raw in enumerate(orders):
        for copy in range(3):
            live.orders.drop(raw, f"{number}-{copy}.cmd.json")
    backup = tmp_path / "backup"
    shutil.copytree(live.orders.new, backup)
    live.open()
    with live.supervisor():
        until(lambda: not live.files("new"), "an empty inbox")
    first = receipts(live)
    assert live.types().count("command_accepted") == 3
    decided = live.types()
    live.reopen()
    live.open()
    for path in backup.iterdir():
        shutil.copy(path, live.orders.new)
    with live.supervisor():
        until(lambda: not live.files("new"), "an empty inbox again")
    assert live.types() == decided
    assert receipts(live) == first


def receipts(live: Live) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in live.folder.outbox.glob("*.receipt.json")}
