"""Orders for a rig that is served: its own ids, and the operator's own key."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.orders import Orders
from tests.served import ServedRig
from thermite.command.signing_key import SigningKey


@dataclass
class ServedOrders(Orders):
    """Signs and drops by hand what `thermite` would refuse to send."""

    served: ServedRig | None = None
    rig_id: str = field(default="")

    @property
    def rig(self) -> str:
        return self.rig_id

    def refused(self, raw: bytes, name: str | None = None) -> dict[str, Any]:
        """Drop a file that must be refused, and return the reason beside it."""
        return self.reason_of(self.drop(raw, name))

    def reason_of(self, dropped: Path) -> dict[str, Any]:
        """Wait until a dropped file has moved aside, and return why."""
        assert self.served is not None
        folder = self.state / "inbox" / "refused"
        self.served.until(lambda: list(folder.glob(f"*-{dropped.name}.reason.json")))
        [path] = folder.glob(f"*-{dropped.name}.reason.json")
        reason: dict[str, Any] = json.loads(path.read_bytes())
        assert not dropped.exists()
        assert path.with_name(path.name.removesuffix(".reason.json")).exists()
        assert reason["what to do"]
        return reason


def orders_for(rig: ServedRig) -> ServedOrders:
    """Return a desk from which a known rig gets its orders."""
    opened = rig.state.opened
    assert opened is not None
    key = (rig.home / "control" / "keys" / "operator.key").read_bytes()
    return ServedOrders(
        rig.state_folder,
        key=SigningKey.from_pem(key, None),
        ledger=opened.ledger,
        served=rig,
        rig_id=opened.rig,
    )
