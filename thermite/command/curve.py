"""Which 32 bytes are an Ed25519 public key that anybody should trust.

A point of low order verifies signatures that nobody made: with the neutral point as key,
one fixed signature fits every message. So a key is trusted only when it is a point in its
one encoding and its eightfold is not the neutral point. Source: RFC 8032, 5.1.3 (decoding)
and 5.1.4 (addition); ledger and signing, 1.3. Public keys are public: no constant time.
"""

from typing import Final

_P: Final = 2**255 - 19  # the field's prime
_D: Final = -121665 * pow(121666, -1, _P) % _P  # the curve's constant
_ROOT: Final = pow(2, (_P - 1) // 4, _P)  # a square root of -1
_KEY_BYTES: Final = 32


def key_problem(raw: bytes) -> str | None:
    """Return why these bytes are no public key to trust, or None."""
    if len(raw) != _KEY_BYTES:
        return f"a public key has {_KEY_BYTES} bytes, and this one has {len(raw)}"
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    x = _x_of(y, raw[31] >> 7)
    if x is None:
        return "these bytes are no Ed25519 public key: they name no point of the curve"
    for _ in range(3):
        x, y = _double(x, y)
    if (x, y) == (0, 1):
        return "this public key is a point of low order: anybody can sign for it"
    return None


def _x_of(y: int, sign: int) -> int | None:
    """Return the x of a point by its y and the lowest bit of x, or None (RFC 8032, 5.1.3)."""
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if x * x % _P != square:
        x = x * _ROOT % _P
    if x * x % _P != square or (x == 0 and sign == 1):
        return None
    return x if x & 1 == sign else _P - x


def _double(x: int, y: int) -> tuple[int, int]:
    product = _D * x * x * y * y % _P
    return (
        2 * x * y * pow(1 + product, -1, _P) % _P,
        (y * y + x * x) * pow(1 - product, -1, _P) % _P,
    )
