"""Base64 with one text for each bytes: what does not encode back to itself is refused."""

import base64
import binascii


def encode(raw: bytes) -> str:
    """Return the bytes in standard base64, with padding."""
    return base64.b64encode(raw).decode("ascii")


def decode(text: str) -> bytes:
    """Return the bytes of a text in standard base64, with padding.

    Raises:
        ValueError: a foreign character, white space, wrong padding or bits left over.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64") from None
    if encode(raw) != text:
        raise ValueError("not base64 in its one form: the padding or the last digit is odd")
    return raw


def decode_either(text: str) -> bytes:
    """Return the bytes of a text in standard or in URL-safe base64, not in a mix of both.

    Raises:
        ValueError: as `decode`.

    Source: DSSE protocol, "Either standard or URL-safe encoding is allowed".
    """
    if "+" in text or "/" in text:
        return decode(text)
    return decode(text.replace("-", "+").replace("_", "/"))
