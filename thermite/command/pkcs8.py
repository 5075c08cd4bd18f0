"""An encrypted private key as text: PKCS#8 with scrypt and AES-256.

Written by hand because the library's own writer derives the key with 2,048 rounds of PBKDF2
(seen in cryptography 50), which a graphics card tries by the million. The reader is
the library's: what is written here, OpenSSL and cryptography open.
Source: RFC 5958 (EncryptedPrivateKeyInfo), RFC 8018 A.4 (PBES2), RFC 7914 7 (scrypt).
"""

import base64
import hashlib
import os
from typing import Final

from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CBC

_PBES2: Final = bytes.fromhex("06092a864886f70d01050d")  # 1.2.840.113549.1.5.13
_SCRYPT: Final = bytes.fromhex("06092b06010401da47040b")  # 1.3.6.1.4.1.11591.4.11
_AES256_CBC: Final = bytes.fromhex("060960864801650304012a")  # 2.16.840.1.101.3.4.1.42
# OWASP's password storage page: N = 2^14, r = 8, p = 5 is worth N = 2^17, p = 1, and
# stays below the 32 MiB at which OpenSSL refuses to read such a file.
_N: Final = 1 << 14
_R: Final = 8
_PARALLEL: Final = 5
_MEMORY: Final = 64 << 20  # bytes that hashlib may use: 128 * N * r is 16 MiB
_SALT_BYTES: Final = 16
_BLOCK_BYTES: Final = 16
_KEY_BYTES: Final = 32


def encrypted_pem(der: bytes, passphrase: bytes) -> bytes:
    """Return a PKCS#8 key, given as DER, encrypted under the passphrase, as PEM."""
    # Salt and start decide nothing and are no secret; they only must never repeat.
    salt = os.urandom(_SALT_BYTES)  # noqa: TID251
    start = os.urandom(_BLOCK_BYTES)  # noqa: TID251
    key = hashlib.scrypt(
        passphrase, salt=salt, n=_N, r=_R, p=_PARALLEL, maxmem=_MEMORY, dklen=_KEY_BYTES
    )
    pad = padding.PKCS7(AES256.block_size).padder()
    box = Cipher(AES256(key), CBC(start)).encryptor()
    secret = box.update(pad.update(der) + pad.finalize()) + box.finalize()
    numbers = b"".join(_integer(number) for number in (_N, _R, _PARALLEL))
    derive = _sequence(_SCRYPT, _sequence(_element(0x04, salt), numbers))
    cipher = _sequence(_AES256_CBC, _element(0x04, start))
    scheme = _sequence(_PBES2, _sequence(derive, cipher))
    return _pem(_sequence(scheme, _element(0x04, secret)))


def _pem(der: bytes) -> bytes:
    text = base64.b64encode(der)
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]  # RFC 7468, 2
    name = b"ENCRYPTED PRIVATE KEY-----"
    return b"\n".join([b"-----BEGIN " + name, *lines, b"-----END " + name, b""])


def _element(tag: int, content: bytes) -> bytes:
    """Return one DER element; length in one byte below 128, else with its own length before."""
    size = len(content)
    if size < 0x80:  # noqa: PLR2004 (X.690, 8.1.3.4)
        return bytes([tag, size]) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(digits)]) + digits + content


def _sequence(*parts: bytes) -> bytes:
    return _element(0x30, b"".join(parts))


def _integer(number: int) -> bytes:
    return _element(0x02, number.to_bytes(number.bit_length() // 8 + 1, "big"))
