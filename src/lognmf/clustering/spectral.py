"""Spectral clustering of neighbour graphs: ours, and scikit-learn's with which it is compared."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.preprocessing import normalize

from lognmf.clustering.kmeans import cluster, kmeans
from lognmf.core import sparse_products
from lognmf.core.arrays import Array, Matrix, double, is_torch, like, namespace, on_gpu, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.matrices import factor_pattern, operator_like, rows_of
from lognmf.core.starts import ARPACK
from lognmf.core.threads import threads_for
from lognmf.graph.neighbours import distinct_rows

TINY_PIECE = 0.1
"""A connected component of the graph with less than this share of an average cluster's samples gets no
cluster of its own."""

LARGE = 20_000
"""Samples above which eigenvectors are good approximations, in time that grows like the graph."""

ROUNDS = 8
"""Maximum number of rounds of filtering; three are usual."""

SETTLED = 0.05
"""Share of what is missing to eigenvalues of 1 by which a round must reduce it to be followed by another."""

AMPLIFIED = 9.0
"""Logarithm of how much a filter may amplify: more would cost the digits of single precision."""

RESTARTS = 300
"""Maximum number of restarts of the Lanczos iterations; tens are usual."""

SHIFT = 1e-5
"""How far beyond the largest eigenvalue, which is 1, the matrix is inverted."""


def spectral_clusters(
    X: Matrix, k: int, rng: np.random.RandomState, W: sp.sparray, n_init: int = 10
) -> np.ndarray:
    """k-means on the *directions* of the spectral embedding of the graph ``W`` (Ng, Jordan and Weiss 2002).

    A sample's length in the embedding tells how central it is in the graph, its direction where
    it belongs. scikit-learn's SpectralClustering keeps the lengths, so that k-means spends
    clusters on what lies far out and merges what lies near the origin. Equal samples are one node.
    """
    n = X.shape[0]
    first, group = distinct_rows(X)
    if k >= len(first) or n < 3:
        return group % k
    W = sp.csr_array(W)
    pieces, piece = connected_components(W, directed=False)
    tiny = (np.bincount(piece) < TINY_PIECE * n / k)[piece]
    if 0 < tiny.sum() < n - k:
        return _with_tiny_pieces(X, k, rng, W, tiny, n_init)
    if pieces < k:
        if len(first) < n:
            members = sp.csr_array((np.ones(n), group, np.arange(n + 1)))
            W = sp.csr_array(members.T @ W @ members)
        embedding = _embedding(W, k, pieces, rng, factor_pattern(X))[group]
    else:
        embedding = np.zeros((n, 0))
    if not embedding.shape[1]:
        # All that is known are the pieces: each is a cluster, or a union of some.
        by_size = np.argsort(-np.bincount(piece), kind="stable")
        return np.argsort(by_size)[piece] % k
    directions = normalize(embedding)
    if n > LARGE and on_gpu(X):
        points = like(directions[:, None, :], double(factor_pattern(X)))
        labels = to_numpy(kmeans(points, k, seed=rng.randint(2**31 - 1), n_init=n_init))[:, 0]
    else:
        labels = cluster(directions, k, random_state=rng, n_init=n_init)
    return labels[first][group]


def _with_tiny_pieces(
    X: Matrix, k: int, rng: np.random.RandomState, W: sp.csr_array, tiny: np.ndarray, n_init: int
) -> np.ndarray:
    """Clusters of all but the samples ``tiny`` (n,), which join the cluster of the nearest mean.

    Every piece of the graph, however small, would have a cluster of its own: a few near-duplicates.
    """
    rest = np.flatnonzero(~tiny)
    labels = np.zeros(len(tiny), dtype=int)
    large = rows_of(X, rest)
    labels[rest] = spectral_clusters(large, k, rng, W[rest][:, rest], n_init)
    members = np.eye(k)[labels[rest]]
    counts = members.sum(axis=0)
    means = t_times(large, members) / np.maximum(counts, 1)
    few = InMemory(rows_of(X, np.flatnonzero(tiny)))
    products = to_numpy(few.times(like(means, few.pattern)[:, None, :]))[:, 0, :]
    nearness = products - np.sum(means**2, axis=0) / 2
    labels[tiny] = np.where(counts > 0, nearness, -np.inf).argmax(axis=1)
    return labels


def _embedding(
    W: sp.csr_array, k: int, pieces: int, rng: np.random.RandomState, pattern: Array | None = None
) -> np.ndarray:
    """The k leading eigenvectors of the random walk on the graph ``W`` (n, n), as rows (n, k).

    A graph in ``pieces`` has its largest eigenvalue several times, and a long chain has many that
    are almost equal: there Lanczos iterations find them by luck, or never. The inverse sets
    them apart, and the factorisation it needs is cheap where a graph is so thin. A well
    connected graph would fill the factors, memory like n², and there plain iterations do.
    """
    degree = np.asarray(W.sum(axis=1)).reshape(-1)
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    walk = sp.csr_array(W.multiply(scale[:, None]).multiply(scale))
    if W.shape[0] > LARGE:
        return filtered_vectors(walk, k, degree, rng, pattern) * scale[:, None]
    first = rng.uniform(-1, 1, W.shape[0])
    plain = {"A": walk, "which": "LA"}
    inverse = {"A": sp.csc_array(walk), "sigma": 1 + SHIFT, "which": "LM"}
    order = (plain, inverse) if pieces == 1 else (inverse,)
    for how in order:
        try:
            vectors = eigsh(k=k, v0=first, maxiter=RESTARTS, **ARPACK, **how)[1]
            break
        except ArpackNoConvergence as error:
            vectors = error.eigenvectors  # some of them are better than none
    return vectors * scale[:, None]


def filtered_vectors(
    walk: sp.csr_array, k: int, degree: np.ndarray, rng: np.random.RandomState, pattern: Array | None = None
) -> np.ndarray:
    """Nearly the k leading eigenvectors (n, k) of a walk, by polynomials that amplify them.

    Some more vectors than k are filtered together. The least of their eigenvalues tells what is to be damped
    in the next round (Zhou, Saad, Tiago and Chelikowsky 2006). Equal eigenvalues do no harm. Where
    ``pattern`` is a tensor, all of it is done on its device.
    """
    V = rng.standard_normal((walk.shape[0], k + 10)).astype(np.float32)
    V[:, 0] = np.sqrt(degree)  # an eigenvector
    times = functools.partial(sparse_products.times, sp.csr_array(walk, dtype=np.float32))
    if pattern is not None and is_torch(pattern):
        V = like(V, pattern[:0].float())
        times = functools.partial(namespace(V).matmul, operator_like(walk, V))
    least, missing = 0.9, float(k)
    with threads_for(walk, V.shape[1]):  # the same products for any number of threads
        for _ in range(ROUNDS):
            V = namespace(V).linalg.qr(_damped(times, V, least))[0]
            values, turn = np.linalg.eigh(to_numpy(V.T @ times(V)).astype(np.float64))
            V = V @ like(turn, V)
            before, missing, least = missing, float((1 - values[-k:]).sum()), float(values[0])
            if missing >= (1 - SETTLED) * before:
                break
    return to_numpy(V[:, -k:]).astype(np.float64)


def _damped(times: Callable[[Array], Array], V: Array, least: float) -> Array:
    """A Chebyshev polynomial of the walk times ``V``: eigenvalues from −1 to ``least`` become small."""
    least = min(max(least, -0.5), 0.999)
    centre, half = float((least - 1) / 2), float((least + 1) / 2)
    terms = int(np.clip(AMPLIFIED / np.arccosh((1 - centre) / half), 3, 20))
    last, V = V, (times(V) - centre * V) / half
    for _ in range(terms - 1):
        product = times(V)
        product -= centre * V
        product *= 2 / half
        product -= last
        last, V = V, product
    return V


def t_times(X: Matrix, F: np.ndarray) -> np.ndarray:
    """``Xᵀ F`` (p, k) in float64, computed where X is."""
    product = InMemory(X).t_times(like(F, factor_pattern(X))[:, None, :])
    return to_numpy(product)[:, 0, :].astype(np.float64)


def spectral_clustering(W: sp.sparray, n_clusters: int, seed: int) -> np.ndarray:
    """Clusters (n,) of the nodes of the graph ``W`` (n, n)."""
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(n_clusters, affinity="precomputed", random_state=seed, n_init=10)
    with warnings.catch_warnings():
        # A disconnected graph is fine: each component is a cluster or a union of some.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        return model.fit_predict(W)
