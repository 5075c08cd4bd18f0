"""The tree is RFC 6962's: its roots and proofs, against the definition and known values."""

import hashlib
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermite.ledger.chain import leaf
from thermite.ledger.merkle import (
    EMPTY_ROOT,
    Tree,
    is_consistent,
    root_of_carried,
    root_of_inclusion,
)

# The inputs and roots that certificate-transparency implementations share.
INPUTS = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


def tree_of(leaves: list[bytes]) -> Tree:
    tree = Tree()
    for one in leaves:
        tree.append(one)
    return tree


def defined_root(leaves: list[bytes]) -> bytes:
    """The definition in RFC 6962, 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    left, right = defined_root(leaves[:k]), defined_root(leaves[k:])
    return hashlib.sha256(b"\x01" + left + right).digest()


def numbered(count: int) -> list[bytes]:
    return [leaf(b"%d" % number) for number in range(count)]


def test_the_known_roots() -> None:
    tree = tree_of([leaf(bytes.fromhex(text)) for text in INPUTS])
    assert [tree.root(size).hex() for size in range(1, 9)] == ROOTS
    assert tree.root(0) == EMPTY_ROOT == hashlib.sha256(b"").digest()


@pytest.mark.parametrize("count", [*range(18), 31, 32, 33, 100])
def test_every_root_is_the_defined_one(count: int) -> None:
    leaves = numbered(count)
    tree = tree_of(leaves)
    assert [tree.root(size) for size in range(count + 1)] == [
        defined_root(leaves[:size]) for size in range(count + 1)
    ]


def test_every_inclusion_proof_leads_to_the_root_and_no_other_leaf_does() -> None:
    leaves = numbered(20)
    tree = tree_of(leaves)
    for size in range(1, 21):
        for index in range(size):
            proof = tree.inclusion(index, size)
            root = tree.root(size)
            assert root_of_inclusion(leaves[index], index, size, proof) == root
            assert root_of_inclusion(leaf(b"other"), index, size, proof) != root
            assert root_of_inclusion(leaves[index], index, size, [*proof, root]) is None
            for at in range(len(proof)):
                assert root_of_inclusion(leaves[index], index, size, proof[:at]) != root
    assert root_of_inclusion(leaves[0], 20, 20, []) is None
    assert root_of_inclusion(leaves[0], -1, 20, []) is None


def test_every_consistency_proof_holds_and_no_changed_one_does() -> None:
    tree = tree_of(numbered(20))
    other = leaf(b"other")
    for new in range(1, 21):
        for old in range(1, new + 1):
            proof = tree.consistency(old, new)
            roots = tree.root(old), tree.root(new)
            assert is_consistent(old, roots[0], new, roots[1], proof)
            assert not is_consistent(old, other, new, roots[1], proof)
            assert not is_consistent(old, roots[0], new, other, proof)
            assert not is_consistent(old, roots[0], new, roots[1], [*proof, other])
            for at in range(len(proof)):
                assert not is_consistent(old, roots[0], new, roots[1], proof[:at])
                changed = [*proof[:at], other, *proof[at + 1 :]]
                assert not is_consistent(old, roots[0], new, roots[1], changed)
    assert not is_consistent(0, EMPTY_ROOT, 5, tree.root(5), [])
    assert not is_consistent(6, tree.root(6), 5, tree.root(5), [])


@given(st.data())
def test_one_proof_for_several_leaves_is_used_up_to_its_end(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 70))
    picked = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    leaves = numbered(size)
    tree = tree_of(leaves)
    proof = tree.carried(sorted(picked), size)
    carried = {index: leaves[index] for index in picked}
    assert root_of_carried(carried, size, proof) == tree.root(size)
    assert root_of_carried(carried, size, [*proof, leaves[0]]) is None
    if proof:
        assert root_of_carried(carried, size, proof[:-1]) is None
    wrong = carried | {min(picked): leaf(b"other")}
    assert root_of_carried(wrong, size, proof) != tree.root(size)
    assert root_of_carried({}, size, proof) is None
    assert root_of_carried({size: leaves[0]}, size, proof) is None


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 10))
def test_a_cut_tree_grows_on_as_if_nothing_had_been_there(before: int, cut: int, more: int) -> None:
    leaves = numbered(before)
    tree = tree_of(leaves)
    tree.cut(cut)
    kept = leaves[:cut]
    for number in range(more):
        tree.append(leaf(b"new %d" % number))
    kept += [leaf(b"new %d" % number) for number in range(more)]
    assert tree.size == len(kept)
    assert tree.root(tree.size) == defined_root(kept)


def test_asking_for_what_is_not_there_is_a_bug() -> None:
    tree = tree_of(numbered(3))
    for ask in (
        lambda: tree.root(4),
        lambda: tree.inclusion(3, 3),
        lambda: tree.consistency(0, 3),
        lambda: tree.leaf(3),
    ):
        with pytest.raises(RuntimeError):
            ask()


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 40))
def test_leaves_added_together_make_the_same_tree(groups: list[int], kept: int) -> None:
    together, alone, count = Tree(), Tree(), 0
    for size in groups:
        new = [leaf(b"%d" % number) for number in range(count, count + size)]
        together.extend(new)
        for one in new:
            alone.append(one)
        count += size
    for tree in (together, alone):
        tree.cut(kept)
        tree.extend([leaf(b"after")])
    assert together.size == alone.size
    for size in range(together.size + 1):
        assert together.root(size) == alone.root(size)


@pytest.fixture
def hurried_threads() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurried_threads")
def test_a_tree_that_grows_answers_every_thread_as_one_that_has_grown() -> None:
    leaves = [leaf(b"%d" % at) for at in range(2_000)]
    whole = tree_of(leaves)
    growing, durable, is_over = Tree(), [0], threading.Event()
    answers: list[tuple[int, bytes, list[bytes]]] = []

    def ask() -> None:
        while not is_over.is_set():
            size = durable[-1]
            if size:
                answers.append((size, growing.root(size), growing.inclusion(0, size)))

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    for at, one in enumerate(leaves):
        growing.append(one)
        durable.append(at + 1)
        if at % 100 == 0:  # a transaction that failed
            growing.append(one)
            time.sleep(0)
            growing.cut(at + 1)
    is_over.set()
    for asker in askers:
        asker.join()
    assert growing.root(len(leaves)) == whole.root(len(leaves))
    assert len(answers) > len(askers)
    for size, root, path in answers:
        assert (root, path) == (whole.root(size), whole.inclusion(0, size))
