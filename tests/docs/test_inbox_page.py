"""The page on the inbox names every message with its fields, and the rig's own limits."""

from pathlib import Path

import msgspec
import pytest

from supervisor.__main__ import SCAN_S
from supervisor.inbox import SETTLE_S
from thermite.harness.import_queue import MOST_TRIES, RETRY
from thermite.harness.inbox import CAP_BYTES
from thermite.harness.refusals import MOST_A_MINUTE
from thermite.schema import offer
from thermite.schema.rig_settings import RigSettings

PAGE = (Path(__file__).parents[2] / "docs/reference/inbox.md").read_text()
MESSAGES = (
    offer.Hello,
    offer.Offer,
    offer.Refuse,
    offer.Fetch,
    offer.Ready,
    offer.Unlock,
    offer.Unlocked,
    offer.Wait,
    offer.Decided,
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_every_message_is_there_with_its_fields(message: type[msgspec.Struct]) -> None:
    tag = message.__struct_config__.tag
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{tag}` |")]
    fields = {field.encode_name for field in msgspec.structs.fields(message)} - {"n"}
    assert {field for field in fields if f"`{field}`" in row} == fields


def test_no_message_is_there_that_does_not_exist() -> None:
    table = PAGE.split("| message | from |")[1].split("\n\n")[0]
    named = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert named == {message.__struct_config__.tag for message in MESSAGES}


@pytest.mark.parametrize(
    "said",
    [
        f"scanned every {SCAN_S:g} s",
        f"stayed the\n  same for {SETTLE_S:g} s",
        f"at most {CAP_BYTES >> 20} MiB each",
        f"at most {MOST_A_MINUTE} refusals a minute",
        f"after three tries, {RETRY.seconds} s apart",
        f"`bundle_max_mib` ({RigSettings().bundle_max_mib})",
        f"`model_max_mib` ({RigSettings().model_max_mib})",
        f"At most {offer.MAX_OPEN_OFFERS} offers are open",
    ],
)
def test_the_limits_are_those_of_the_rig(said: str) -> None:
    assert said in PAGE


def test_three_tries_are_three() -> None:
    assert MOST_TRIES == 3
