"""Keys: which bytes are one, which files hold one, and what is said of the others."""

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st

from tests.command.orders import ALICE, BOB
from tests.openssh import ssh_keygen
from tests.requirement import shows
from thermite.command.curve import key_problem
from thermite.command.envelope import Envelope
from thermite.command.keyring import Keyring, PassphraseNeededError, PublicKey, SigningKey
from thermite.errors import UsageError
from thermite.schema.command import TrustedKey

P = 2**255 - 19
# RFC 8032, 7.1, test 1: seed and public key.
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
# The points whose eightfold is the neutral one: y = 1, -1, 0 and the two of order 8.
ORDER_8 = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
ORDER_8_TOO = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")


def number(y: int, sign: int = 0) -> bytes:
    return (y | sign << 255).to_bytes(32, "little")


def private_pem(key: object) -> bytes:
    assert isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey))
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def said_of(text: bytes, passphrase: bytes | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        SigningKey.from_pem(text, passphrase)
    return str(caught.value)


def ssh_key(folder: Path, kind: str, comment: str, passphrase: str = "") -> tuple[bytes, str]:
    path = folder / f"key-{kind}"
    ssh_keygen(path, kind, comment, passphrase)
    return path.read_bytes(), path.with_name(path.name + ".pub").read_text(encoding="utf-8")


def test_a_seed_has_the_public_key_of_the_standards_vector() -> None:
    assert SigningKey.from_raw(SEED).public.raw == PUBLIC
    assert key_problem(PUBLIC) is None


def test_id_and_fingerprint_are_the_hash_of_the_raw_key() -> None:
    key = PublicKey(PUBLIC)
    # printf of the vector's bytes | sha256sum
    whole = "21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9"
    assert key.id == whole[:32]
    assert key.fingerprint == f"SHA256:{whole}"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(number(1), id="neutral point"),
        pytest.param(number(P - 1), id="order 2"),
        pytest.param(number(0), id="order 4"),
        pytest.param(number(0, 1), id="order 4, other sign"),
        pytest.param(ORDER_8, id="order 8"),
        pytest.param(ORDER_8[:-1] + bytes([ORDER_8[-1] | 0x80]), id="order 8, other sign"),
        pytest.param(ORDER_8_TOO, id="the other of order 8"),
        pytest.param(ORDER_8_TOO[:-1] + bytes([ORDER_8_TOO[-1] | 0x80]), id="and its sign"),
    ],
)
def test_a_point_of_low_order_is_never_trusted(raw: bytes) -> None:
    with pytest.raises(UsageError, match="low order"):
        PublicKey(raw)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(number(P + 1), "no point", id="neutral point written otherwise"),
        pytest.param(number(2**255 - 1), "no point", id="largest"),
        pytest.param(number(1, 1), "no point", id="minus zero"),
        pytest.param(number(2), "no point", id="not on the curve"),
        pytest.param(PUBLIC[:-1], "has 31", id="31 bytes"),
        pytest.param(PUBLIC + b"\0", "has 33", id="33 bytes"),
    ],
)
def test_bytes_that_are_no_key_are_refused(raw: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        PublicKey(raw)


def test_the_neutral_point_would_have_verified_anything() -> None:
    # Why low order is refused: R = neutral point, S = 0 fits every message under key 1.
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    forged = number(1) + bytes(32)
    Ed25519PublicKey.from_public_bytes(number(1)).verify(forged, b"stop the campaign")


@given(st.binary(min_size=32, max_size=32))
def test_every_real_key_is_accepted(seed: bytes) -> None:
    assert key_problem(SigningKey.from_raw(seed).public.raw) is None


def test_a_line_reads_back() -> None:
    line = ALICE.public.line("Anna's laptop")
    assert line.startswith("thermite-ed25519 ")
    assert PublicKey.from_line(line + "\r\n") == (ALICE.public, "Anna's laptop")


@pytest.mark.parametrize("passphrase", [None, b"correct horse", "пароль".encode()])
def test_a_key_file_reads_back(passphrase: bytes | None) -> None:
    assert SigningKey.from_pem(ALICE.pem(passphrase), passphrase).public == ALICE.public


def test_an_empty_passphrase_is_refused() -> None:
    with pytest.raises(UsageError, match="protects nothing"):
        ALICE.pem(b"")


def test_openssl_opens_our_encrypted_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    path.write_bytes(ALICE.pem(b"correct horse"))
    argv = ["openssl", "pkey", "-in", str(path), "-passin", "pass:correct horse", "-noout", "-text"]
    assert b"ED25519" in subprocess.run(argv, check=True, capture_output=True).stdout


def test_an_encrypted_key_is_not_the_same_twice_and_hides_the_seed() -> None:
    first, second = ALICE.pem(b"x"), ALICE.pem(b"x")
    assert first != second
    assert b"scrypt" not in first  # an identifier, not a word
    assert ALICE.pem(None).split(b"\n")[1] not in first


def test_a_private_key_never_shows_itself() -> None:
    assert "01" * 8 not in repr(ALICE)
    assert "_private" not in repr(ALICE)


@shows("K10")
@pytest.mark.parametrize(
    "bend",
    [
        pytest.param(lambda text: text, id="as it is"),
        pytest.param(lambda text: text.replace(b"\n", b"\r\n"), id="CRLF"),
        pytest.param(lambda text: text.rstrip(b"\n"), id="no last line end"),
        pytest.param(lambda text: b"\xef\xbb\xbf" + text, id="byte-order mark"),
        pytest.param(lambda text: b"\n\n" + text + b"\n \n", id="blank lines"),
    ],
)
def test_openssh_and_pem_keys_are_read_however_they_were_saved(
    bend: object, tmp_path: Path
) -> None:
    assert callable(bend)
    private, public = ssh_key(tmp_path, "ed25519", "ключ Анны")
    wanted, label = PublicKey.from_line(public)
    assert label == "ключ Анны"
    assert SigningKey.from_pem(bend(private), None).public == wanted
    assert SigningKey.from_pem(bend(private), b"not needed").public == wanted
    assert SigningKey.from_pem(bend(ALICE.pem(None)), None).public == ALICE.public


@shows("K10")
def test_an_openssh_key_with_a_passphrase_is_read_or_says_what_is_missing(tmp_path: Path) -> None:
    private, _ = ssh_key(tmp_path, "ed25519", "x", passphrase="correct horse")
    with pytest.raises(UsageError, match=r"has a passphrase|bcrypt"):
        SigningKey.from_pem(private, None)
    with pytest.raises(UsageError, match=r"does not open|bcrypt"):
        SigningKey.from_pem(private, b"wrong")


@shows("K10")
def test_a_key_of_another_kind_is_named(tmp_path: Path) -> None:
    assert "RSA" in said_of(private_pem(rsa.generate_private_key(65537, 2048)))
    assert "Ed25519 only" in said_of(private_pem(ec.generate_private_key(ec.SECP256R1())))
    assert "Ed25519 only" in said_of(ssh_key(tmp_path, "ecdsa", "x")[0])
    assert "RSA" in said_of(ssh_key(tmp_path, "rsa", "x")[0])


@shows("K10")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(ALICE.public.line("x").encode(), "a public key", id="public line"),
        pytest.param(b"ssh-ed25519 AAAA x", "a public key", id="public OpenSSH line"),
        pytest.param(b"-----BEGIN PUBLIC KEY-----\nAA==\n", "holds a public key", id="public PEM"),
        pytest.param(b"-----BEGIN RSA PRIVATE KEY-----\nAA==\n", "RSA PRIVATE KEY", id="PKCS#1"),
        pytest.param(b"nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=", "bare word", id="base64"),
        pytest.param(b"hello there\n", "no key file", id="text"),
        pytest.param(ALICE.pem(None)[:60], "damaged", id="truncated"),
        pytest.param(b"x" * 70_000, "at most 65536", id="huge"),
    ],
)
def test_what_is_no_private_key_is_named_and_never_repeated(text: bytes, said: str) -> None:
    message = said_of(text)
    assert said in message
    assert "nWGxne" not in message


def test_a_passphrase_is_asked_for_and_a_wrong_one_is_said() -> None:
    locked = ALICE.pem(b"correct horse")
    with pytest.raises(PassphraseNeededError):
        SigningKey.from_pem(locked, None)
    assert "does not open" in said_of(locked, b"wrong")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("-----BEGIN PRIVATE KEY-----", "a private key", id="private"),
        pytest.param("-----BEGIN CERTIFICATE-----", "a PEM file", id="certificate"),
        pytest.param("ssh-rsa AAAA x", "ssh-rsa", id="RSA"),
        pytest.param("ecdsa-sha2-nistp256 AAAA x", "ecdsa-sha2-nistp256", id="ECDSA"),
        pytest.param("sk-ssh-ed25519@openssh.com AAAA", "sk-ssh", id="security key"),
        pytest.param("nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=", "bare base64", id="base64"),
        pytest.param("thermite-ed25519 nWGx x", "has 3", id="short"),
        pytest.param("thermite-ed25519 nWGxn! x", "not base64", id="not base64"),
        pytest.param("ssh-ed25519 AAAA x", "does not hold", id="short OpenSSH"),
        pytest.param("ssh-ed25519 A!AA x", "not base64", id="odd OpenSSH"),
        pytest.param("thermite-rsa AAAA x", "no public key", id="unknown word"),
    ],
)
def test_what_is_no_public_line_is_named_and_never_repeated(line: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        PublicKey.from_line(line)
    assert said in str(caught.value)
    assert "nWGxne" not in str(caught.value)


def test_one_key_is_one_signer_however_often_it_signs() -> None:
    signature = ALICE.sign(b"DSSEv1 1 t 1 x")
    envelope = Envelope("t", b"x", (signature, signature, b"junk", bytes(64)))
    keys = [
        TrustedKey(id=k.public.id, public=k.public.base64, label="", roles=["command"])
        for k in (BOB, ALICE)
    ]
    assert [key.id for key in Keyring(keys).find_signers(envelope)] == [ALICE.public.id]


def test_a_key_cannot_be_listed_with_two_lists_of_rights() -> None:
    key = TrustedKey(id=ALICE.public.id, public=ALICE.public.base64, label="", roles=["root"])
    with pytest.raises(UsageError, match="listed twice"):
        Keyring([key, key])
