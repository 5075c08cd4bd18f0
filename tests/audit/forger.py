"""What an attacker does to a ledger, from a clumsy edit to a theft of the rig's key."""

import sqlite3
from collections.abc import Callable

from thermite.command.note import Checkpoint, sign_note
from thermite.command.signing_key import SigningKey
from thermite.ledger.chain import genesis, leaf, link
from thermite.ledger.merkle import Tree
from thermite.ledger.replay import opening


def edit(seq: int, old: bytes, new: bytes) -> Callable[[sqlite3.Connection], None]:
    """Change a body."""

    def change(connection: sqlite3.Connection) -> None:
        body = connection.execute("SELECT body FROM events WHERE seq = ?", (seq,)).fetchone()[0]
        assert old in body
        connection.execute(
            "UPDATE events SET body = ? WHERE seq = ?", (body.replace(old, new), seq)
        )

    return change


def renumber(connection: sqlite3.Connection) -> None:
    """Close the gaps that deletions left."""
    seqs = [row[0] for row in connection.execute("SELECT seq FROM events ORDER BY seq")]
    for new, old in enumerate(seqs, 1):
        connection.execute("UPDATE events SET seq = ? WHERE seq = ?", (new, old))


def rechain(connection: sqlite3.Connection) -> None:
    """Make all hashes anew, so that the chain fits."""
    said, key = opening(connection)
    head = genesis(said.ledger, key)
    rows = connection.execute("SELECT seq, body FROM events ORDER BY seq").fetchall()
    for seq, body in rows:
        head = link(head, seq, leaf(body))
        connection.execute("UPDATE events SET hash = ? WHERE seq = ?", (head, seq))


def resign(connection: sqlite3.Connection, key: SigningKey) -> None:
    """Sign all checkpoints anew with the rig's own key."""
    said, _ = opening(connection)
    tree = Tree()
    heads = [b""]
    for body, digest in connection.execute("SELECT body, hash FROM events ORDER BY seq"):
        tree.append(leaf(body))
        heads.append(digest)
    for (size,) in connection.execute("SELECT size FROM checkpoints").fetchall():
        time = "2026-01-31T12:00:00.000000Z"
        said_so = Checkpoint(said.rig, said.ledger, size, tree.root(size), heads[size], time)
        note = sign_note(said_so, key).encode()
        connection.execute("UPDATE checkpoints SET note = ? WHERE size = ?", (note, size))
