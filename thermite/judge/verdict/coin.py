"""The coin: which arm runs first in each cell of each block, from a committed seed.

The seed comes from a key that only the rig holds and from bytes that only control picks,
so neither side chooses it; its hash is published before the first run, the seed itself
at the end. Source: the design page on judging, 3.1.
"""

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from thermite.schema.strict import Strict
from thermite.schema.verdict import STAGE_BYTE, Arm, JudgeStage

_DOMAIN: Final = b"thermite/order/v1"
"""Keeps this use of the key apart from any other (judging, 3.1)."""


class Turn(Strict):
    """One cell of a block and which arm runs first in it."""

    cell: str
    champion_first: bool

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """Both arms, the first to run first."""
        return ("champion", "candidate") if self.champion_first else ("candidate", "champion")


def order_seed(coin_key: bytes, payload_hash: bytes) -> bytes:
    """Return the seed of an assignment's orders, 32 bytes.

    Args:
        coin_key: the rig's own 32 bytes.
        payload_hash: SHA-256 of the command's payload, or 32 random bytes of a local job.
    """
    return hmac.new(coin_key, _DOMAIN + payload_hash, hashlib.sha256).digest()


def commitment(seed: bytes) -> bytes:
    """Return what is published of a seed before it is used: its SHA-256."""
    return hashlib.sha256(seed).digest()


def draw_order(
    seed: bytes, k: int, stage: JudgeStage, block: int, cells: Sequence[str]
) -> list[Turn]:
    """Return the turns of one block, in the order in which they run.

    Half of the cells run the champion first, so that a position effect cancels over
    cells; the lowest bit swaps the whole block.

    Args:
        seed: the assignment's 32 bytes.
        k: the attempt's index, a re-anchor's number, or 0 in a selftest.
        stage: one that has a byte: screen, confirm, re_anchor or selftest.
        block: its index in the stage, dropped blocks included.
        cells: names, each once; their order does not matter.
    """
    stage_byte = bytes([STAGE_BYTE[stage]])
    bits = hashlib.sha256(seed + k.to_bytes(4, "big") + stage_byte + block.to_bytes(4, "big"))
    draw = bits.digest()
    ordered = sorted(cells, key=lambda cell: hashlib.sha256(draw + cell.encode()).digest())
    swapped = draw[0] & 1 == 1
    half = len(ordered) // 2
    return [
        Turn(cell=cell, champion_first=(place < half) is not swapped)
        for place, cell in enumerate(ordered)
    ]
