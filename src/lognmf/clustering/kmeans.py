"""Clusters by k-means: `cluster` for one embedding, `kmeans` for many at once, on their device.

Equal embeddings and seeds give equal labels in any batch, in any chunk and on any device, although no
library promises equal bits: everything is computed in float64, and where the least or largest of several
numbers is chosen, the first one *within rounding* is taken, so that ties stay ties.
"""

from __future__ import annotations

import functools
import math
import warnings
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state as generator
from threadpoolctl import ThreadpoolController

from lognmf.clustering.lloyd import SLACK, Points, assign, first, first_least, lloyd, pick
from lognmf.core.arrays import Array, is_torch, join, like, namespace, on_gpu, to_numpy
from lognmf.core.matrices import with_small_indices
from lognmf.core.threads import SMALL, one_blas_thread, operations
from lognmf.parameters import check_random_state, check_sparse

_MEMORY = {"cpu": 2**24, "accelerator": 2**32}
"""Bytes for temporaries: small enough for a CPU's caches (`benchmarks/kmeans.py --memory 256` is half as
fast), large enough to keep a GPU busy."""


STARTED_ON = 50_000
"""Samples on which the starts of k-means are made and compared where there are more."""


def cluster(V: Any, n_clusters: int, *, random_state: Any = None, n_init: int = 10) -> np.ndarray:
    """Group samples by scikit-learn's k-means on their codes, as in the paper.

    Of more than 50,000 samples the starts are made on 50,000 drawn at random (20 for each cluster, if that is
    more), and k-means on all of them goes on from the best.

    Parameters
    ----------
    V : array-like, sparse matrix or torch tensor of shape (n, k)
        Codes, one sample per row.
    n_clusters : int
        Number of clusters, at most n.
    random_state : int, RandomState or None, default=None
        Seed of the starts of k-means.
    n_init : int, default=10
        Number of starts; the tightest clustering wins.

    Returns
    -------
    labels : ndarray of shape (n,)
        Clusters 0, 1, …, without gaps; fewer than ``n_clusters`` where V has fewer distinct rows.

    Raises
    ------
    ValueError
        If V is not a matrix, ``n_clusters`` is not from 1 to n, or ``random_state`` is no seed.

    See Also
    --------
    lognmf.NMFClustering : Chooses clusters without labels.

    Examples
    --------
    >>> labels = cluster([[0, 1], [0, 1.1], [5, 0]], 2, random_state=0)
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    check_sparse("V", V)
    V = with_small_indices(sp.csr_array(V)) if sp.issparse(V) else to_numpy(V)
    if V.ndim != 2:
        msg = f"V must have shape (samples, components); got {V.shape}."
        raise ValueError(msg)
    n = V.shape[0]
    whole = isinstance(n_clusters, Integral) and not isinstance(n_clusters, bool)
    if not (whole and 1 <= n_clusters <= n):
        msg = f"n_clusters must be an integer from 1 to {n}, the number of samples; got {n_clusters!r}."
        raise ValueError(msg)
    check_random_state(random_state)
    rng = generator(random_state)
    kmeans = KMeans(n_clusters, n_init=n_init, random_state=rng)
    # scikit-learn's threads add their sums in the order in which they finish: of two, a + b is b + a.
    most = 1 if operations(V, n_clusters) <= SMALL else 2
    threads = min([most, *(library.num_threads for library in _openmp().lib_controllers)])
    with warnings.catch_warnings(), one_blas_thread(), _openmp().limit(limits=threads):
        # Equal codes belong together, and fewer clusters are then expected.
        warnings.filterwarnings("ignore", "Number of distinct clusters", ConvergenceWarning)
        if n > (count := max(STARTED_ON, 20 * n_clusters)):
            some = kmeans.fit(V[np.sort(rng.choice(n, count, replace=False))])
            kmeans = KMeans(n_clusters, init=some.cluster_centers_, n_init=1, random_state=rng)
        labels = kmeans.fit_predict(V)
    return np.unique(labels, return_inverse=True)[1]


def numbered_by_parts(labels: np.ndarray, V: Any) -> np.ndarray:
    """The same clusters, numbered in the order of their main parts: with k of both, cluster j has part j."""
    clusters, places = np.unique(labels, return_inverse=True)
    order = np.argsort(main_parts(places, len(clusters), V), kind="stable")
    return np.argsort(order)[places].astype(labels.dtype)


def main_parts(labels: np.ndarray, n_clusters: int, V: Any) -> np.ndarray:
    """A part for each cluster, with large codes in it; no part twice while there are others."""
    codes = to_numpy(V)
    top = abs(codes).max(axis=0)
    heights = codes / np.where(top > 0, top, 1)
    members = np.bincount(labels, minlength=n_clusters)
    sums = np.stack([np.bincount(labels, column, n_clusters) for column in heights.T], axis=1)
    means = sums / np.maximum(members, 1)[:, None]
    parts = means.argmax(axis=1)
    matched, own = linear_sum_assignment(-means)
    parts[matched] = own
    return parts


@functools.cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


def kmeans(
    V: Array,
    n_clusters: int,
    *,
    seed: Any,
    n_init: int = 10,
    max_iter: int = 300,
    tol: float = 1e-4,
    memory: int | None = None,
) -> Array:
    """Cluster the rows of every embedding by k-means.

    V (n, B, k) holds B embeddings of n samples, of any array library; ``seed`` is one for all or one for
    each. The labels (n, B), int64, are in the library and on the device of V.

    Starts are drawn by greedy k-means++. An empty cluster takes the sample farthest from its centre. Of
    the ``n_init`` restarts the one of least inertia wins. A restart has converged when its labels no longer
    change, or when its centres move by at most ``tol`` times the variance of the embedding (squared, summed
    over the centres). Equal rows share their label, so an embedding with fewer distinct rows than clusters
    leaves some clusters empty. ``memory`` is in bytes for temporaries: the batch is processed in chunks, of
    at least one restart of one embedding. None is 16 MiB on a CPU, 4 GiB on a GPU.

    An embedding's labels depend on its entries and its seed alone. Random numbers are used in the order of
    scikit-learn's KMeans, which finds the same labels with ``random_state=seed`` unless rounding decides or
    a cluster is empty.

    Examples
    --------
    >>> import numpy as np
    >>> V = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 0.0], [5.1, 0.0]])
    >>> labels = kmeans(np.stack([V, 2 * V], axis=1), 2, seed=0)
    >>> labels.shape, bool((labels[0] == labels[1]).all()), bool((labels[1] == labels[2]).any())
    ((4, 2), True, False)
    """
    V = V.detach() if is_torch(V) else V
    seeds = np.broadcast_to(np.asarray(seed), (V.shape[1],))
    draws = n_init, 1 + (n_clusters - 1) * _n_candidates(n_clusters)
    parts = []
    memory = memory or _MEMORY["accelerator" if on_gpu(V) else "cpu"]
    for settings, restarts in _chunks(V.shape, n_clusters, n_init, memory):
        points = Points.of(V[:, settings, :])
        trials = []
        for some in restarts:
            uniform = like(_uniform(seeds[settings], draws, some), points.rows)
            centres = lloyd(points, _starts(points, uniform, n_clusters), max_iter, tol)
            labels, _, distance = assign(points, centres)
            trials.append((labels, namespace(labels).sum(points.snap(distance), axis=2)))
        parts.append(_winners(points, trials))
    return join(parts)


def _winners(points: Points, trials: list[tuple[Array, Array]]) -> Array:
    """Labels (n, b) of the best restarts, from the labels (b, R, n) and the inertia (b, R) of blocks."""
    xp = namespace(points.rows)
    labels, inertia = (xp.concat(list(side), axis=1) for side in zip(*trials, strict=True))
    # Restarts that found the same clusters number them differently: the first one wins.
    best = first_least(inertia, SLACK * points.spread)
    return xp.permute_dims(xp.astype(pick(labels, best), xp.int64), (1, 0))


def _n_candidates(n_clusters: int) -> int:
    """Samples tried for every centre, as many as scikit-learn tries."""
    return 2 + int(math.log(n_clusters))


def _starts(points: Points, uniform: Array, n_clusters: int) -> Array:
    """Centres (b, R, K, k) of greedy k-means++, from uniform numbers (b, R, 1 + (K − 1) L).

    Each centre is the one of L samples, drawn by their squared distance to the centres so
    far, that brings the samples closest.
    """
    xp, L = namespace(uniform), _n_candidates(n_clusters)
    n, slack = points.square.shape[2], SLACK * points.spread[:, :, None]
    first = points.at(_whole(uniform[:, :, :1], n))
    chosen = [first[:, :, 0, :-1]]
    closest = _squared(points, first)[:, :, 0, :]
    for step in range(n_clusters - 1):
        draws = uniform[:, :, 1 + step * L : 1 + (step + 1) * L]
        candidates = points.at(_sample(closest, draws))
        distance = xp.minimum(closest[:, :, None, :], _squared(points, candidates))
        best = first_least(xp.sum(distance, axis=3), slack)
        closest = pick(distance, best)
        chosen.append(pick(candidates, best)[:, :, :-1])
    return xp.stack(chosen, axis=2)


def _squared(points: Points, samples: Array) -> Array:
    """Squared distances of all samples to some of them: (b, R, L, k + 1) → (b, R, L, n)."""
    return points.snap(points.products(samples[..., :-1]) + points.square[:, :, None, :])


def _sample(weights: Array, uniform: Array) -> Array:
    """Indices drawn by ``weights`` (b, R, n): (b, R, L); evenly where all weights are 0."""
    xp = namespace(weights)
    sums = xp.cumulative_sum(weights, axis=2)
    total = sums[:, :, -1:]
    drawn = first(sums[:, :, None, :] > (uniform * total)[..., None])
    return xp.where(total > 0, drawn, _whole(uniform, weights.shape[2]))


def _whole(uniform: Array, n: int) -> Array:
    """Uniform numbers in [0, 1) as integers from 0 to n − 1."""
    xp = namespace(uniform)
    return xp.astype(xp.floor(uniform * n), xp.int64)


def _uniform(seeds: np.ndarray, shape: tuple[int, int], restarts: slice) -> np.ndarray:
    """Uniform random numbers of some restarts: one table per seed, one row per restart."""
    distinct, which = np.unique(seeds, return_inverse=True)
    return np.stack([np.random.RandomState(seed).random_sample(shape)[restarts] for seed in distinct])[which]


def _chunks(
    shape: tuple[int, int, int], n_clusters: int, n_init: int, memory: int
) -> list[tuple[slice, list[slice]]]:
    """Embeddings, and blocks of their restarts, whose temporaries fit into ``memory`` bytes."""
    (n, B, k), L = shape, _n_candidates(n_clusters)
    # Of a restart: products and masks, or k-means++ candidates; labels and distances; centres.
    restart = n * (max(11 * n_clusters, 24 * L) + 48) + 40 * n_clusters * (k + 1)
    shared = n * 40 * (k + 1)
    embeddings = max(1, int(memory // (shared + n_init * restart)))
    restarts = int(np.clip((memory - shared) // restart, 1, n_init))
    blocks = _slices(n_init, restarts)
    return [(settings, blocks) for settings in _slices(B, embeddings)]


def _slices(size: int, step: int) -> list[slice]:
    return [slice(start, min(start + step, size)) for start in range(0, size, step)]
