"""Sparse matrices whose parts contradict each other are refused before compiled code follows them."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, GraphNMF, PlainNMF, WeightedNMF, cluster, knn_graph, log_norm, metrics, noise
from lognmf.parameters import check_sparse

GOOD = (np.arange(144.0).reshape(12, 12) % 7) * (np.arange(144).reshape(12, 12) % 5 > 0)


def _set(part, place, value):
    def damage(M):
        array = M.coords[1] if part == "column" else getattr(M, part)
        array[place] = value

    return damage


def _cut(part):
    def damage(M):
        setattr(M, part, getattr(M, part)[:-1])

    return damage


def _fractional(M):
    M.indices = M.indices.astype(float)


def _no_multiple_of_the_block(M):
    M._shape = (13, 12)


COMPRESSED = {
    "index too large": _set("indices", 3, 10**6),
    "negative index": _set("indices", 3, -1),
    "pointer too large": _set("indptr", 2, 10**6),
    "falling pointers": _set("indptr", 2, 0),
    "hidden behind no entries": lambda M: (_set("indptr", 2, 10**6)(M), _set("indptr", -1, 0)(M)),
    "last pointer too large": _set("indptr", -1, 10**6),
    "first pointer": _set("indptr", 0, 1),
    "too few pointers": _cut("indptr"),
    "too few indices": _cut("indices"),
    "too few values": _cut("data"),
    "fractional indices": _fractional,
}
DAMAGES = {
    **{(form, name): damage for form in ("csr", "csc", "bsr") for name, damage in COMPRESSED.items()},
    ("bsr", "shape"): _no_multiple_of_the_block,
    ("coo", "index too large"): _set("column", 3, 12),
    ("coo", "negative index"): _set("column", 3, -1),
    ("coo", "too few values"): _cut("data"),
    ("dia", "too few values"): _cut("data"),
    ("dia", "the same diagonal twice"): _set("offsets", 1, -11),
}


def sparse(form, damage=None):
    M = sp.bsr_array(GOOD, blocksize=(3, 2)) if form == "bsr" else getattr(sp, f"{form}_array")(GOOD)
    if damage is not None:
        damage(M)
    return M


@pytest.mark.parametrize(("form", "name"), DAMAGES)
def test_parts_that_contradict_each_other(form, name):
    with pytest.raises(
        ValueError, match=r"^X is a broken sparse matrix: .*\. Build it again from its entries"
    ):
        check_sparse("X", sparse(form, DAMAGES[form, name]))


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_sound_ones_pass_unchanged(form):
    for M in (sparse(form), sparse(form)[:0] if form in ("csr", "csc", "lil") else sparse(form)):
        before = M.toarray()
        check_sparse("X", M)
        np.testing.assert_array_equal(M.toarray(), before)


def test_room_for_more_entries_is_no_fault():
    M = sparse("csr")
    M.indices, M.data = np.append(M.indices, 10**6), np.append(M.data, np.nan)
    check_sparse("X", M)


BROKEN = sparse("csr", COMPRESSED["index too large"])
PLACES = {
    **{f"fit {name}": lambda cls=cls: cls(2).fit(BROKEN) for name, cls in MODELS.items() if cls.spec.sparse},
    "transform": lambda: PlainNMF(2, max_iter=2, random_state=0).fit(GOOD).transform(BROKEN),
    "weights": lambda: WeightedNMF(2).fit(sp.csr_array(GOOD), weights=BROKEN),
    "weights of dense X": lambda: WeightedNMF(2).fit(GOOD, weights=BROKEN),
    "graph": lambda: GraphNMF(2, graph=BROKEN).fit(GOOD),
    "knn_graph": lambda: knn_graph(BROKEN),
    "normalized_cut": lambda: metrics.normalized_cut(BROKEN, np.arange(12) % 2),
    "hoyer_sparseness": lambda: metrics.hoyer_sparseness(BROKEN),
    "noise": lambda: noise.remove(BROKEN, 0.5, 0),
    "cluster": lambda: cluster(BROKEN, 2),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_wherever_users_hand_one_over(place):
    with pytest.raises(
        ValueError, match=r"is a broken sparse matrix: an index lies outside its 12×12 entries"
    ):
        place()


TENSORS = {
    "V": lambda V: PlainNMF(12, max_iter=2, random_state=0).fit(GOOD).inverse_transform(V),
    "weights": lambda weights: WeightedNMF(2).fit(GOOD, weights=weights),
    "M": log_norm,
}


@pytest.mark.parametrize("name", TENSORS)
def test_sparse_tensors_are_refused_in_words(name):
    tensor = pytest.importorskip("torch").tensor(GOOD).to_sparse()
    told = rf"{name} must be a dense tensor; got layout torch.sparse_coo. Use {name}\.to_dense\(\)"
    with pytest.raises(TypeError, match=told):
        TENSORS[name](tensor)


def test_a_sparse_matrix_of_words():
    """SciPy reads one from a file, and fails when it is to be converted."""
    W = sp.csc_array(np.eye(3))
    W.data = np.array(["a", "b", "c"])
    with pytest.raises(ValueError, match="X must hold numbers; got a sparse matrix of <U1"):
        check_sparse("X", W)
