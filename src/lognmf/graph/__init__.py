"""The neighbour graph of the samples."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import is_torch, on_gpu, to_numpy
from lognmf.core.matrices import on_cpu, rows_of, squared_row_norms, stored_values, with_small_indices
from lognmf.graph.neighbours import METHODS, Neighbours, find_neighbours
from lognmf.parameters import check_choice, check_integer, check_sparse, unmasked
from lognmf.progress import stage

SEARCHES = {"knn": "auto", "exact": "exact", "approximate": "approximate"}
"""Names of built graphs, and how their neighbours are found."""

BLOCK = 1 << 17
"""Numbers per block of work."""


def knn_graph(
    X: Any,
    n_neighbors: int = 5,
    weighting: Literal["binary", "heat", "cosine"] = "binary",
    *,
    method: Literal["auto", "exact", "approximate"] = "auto",
) -> sp.csr_array:
    """Build the symmetric graph of nearest neighbours in Euclidean distance.

    Samples i and j are joined if either is among the ``n_neighbors`` nearest of the other, W = max(W, Wᵀ).
    Distances are exact: candidates come from fast matrix products, and their distances are then computed
    from differences.

    An approximate search compares every sample with those of nearby cells only, until at least 99 % of the
    true neighbours of 1,000 of the samples are found. It has no random part: equal data have equal graphs.
    Below 12,288 samples, and wherever it would not be much cheaper, it is the exact one.

    Equal samples are equal in the graph. Neighbours are sought among the distinct samples, and the copies of
    a sample share its edges evenly: an edge between samples of c and d copies has min(c, d) times its weight
    in all. What a copy cannot give away, and 1 more, it shares with the other copies.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows.
    n_neighbors : int, default=5
        Neighbours per sample, between 1 and n − 1; all others where there are fewer distinct samples.
    weighting : {"binary", "heat", "cosine"}, default="binary"
        Weight of an edge: 1; ``exp(−d²/t)`` with t the mean squared distance over all edges; or the cosine of
        the two samples, negative ones as 0.
    method : {"auto", "exact", "approximate"}, default="auto"
        How neighbours are found. "auto" is exact for sparse X, and for dense X up to n² (p + 100) = 5 · 10¹¹:
        40,000 samples of 200 features. Sparse X is searched exactly in any case.

    Returns
    -------
    csr_array of shape (n, n)
        Symmetric, nonnegative, zero diagonal, float64.

    Raises
    ------
    ValueError
        If there are too few samples, or X holds NaN, infinity or numbers too large to square.

    See Also
    --------
    lognmf.metrics.normalized_cut : Scores a clustering on the graph.

    Examples
    --------
    >>> knn_graph([[0.0], [1.0], [5.0]], n_neighbors=1).toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    X = _checked(X)
    n = X.shape[0]
    check_integer("n_neighbors", n_neighbors, 1)
    if n_neighbors >= n:
        msg = (
            f"n_neighbors must lie between 1 and the number of samples less one ({n - 1}); "
            f"got {n_neighbors} for {n} samples."
        )
        raise ValueError(msg)
    check_choice("weighting", weighting, WEIGHTINGS)
    check_choice("method", method, METHODS)
    return _graph_of(X, find_neighbours(X, int(n_neighbors), method), weighting)


def _checked(X: Any) -> Any:
    """Finite samples that can be squared, on the GPU or in NumPy; sparse ones in canonical format."""
    from sklearn.utils import check_array

    if on_gpu(X):
        X = X if X.dtype.is_floating_point and X.element_size() >= 4 else X.float()
        check_array(to_numpy(stored_values(X).sum().reshape(1, 1)), input_name="X")  # NaN if any entry is
    else:
        X = on_cpu(X) if is_torch(X) else unmasked(X)
        check_sparse("X", X)
        X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    values = stored_values(X)
    dtype = to_numpy(values[:1]).dtype
    largest = 0.0 if 0 in values.shape else float(max(values.max(), -values.min()))
    if largest > float(np.sqrt(np.finfo(dtype).max / (16 * X.shape[1]))):
        msg = (
            f"X is too large for distances in {dtype}: the square of its largest entry {largest:.3g} "
            "overflows. Divide X by a constant."
        )
        raise ValueError(msg)
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


class Graphs:
    """The graphs of one data set, each built or checked once and handed on.

    ``known`` holds neighbour graphs that are at hand, by their number of neighbours. ``graph`` is what "knn"
    stands for: a name in `SEARCHES`, or a graph that a user gave.
    """

    def __init__(
        self,
        X: Any,
        known: Mapping[int, sp.csr_array] | None = None,
        *,
        graph: Any = "knn",
    ) -> None:
        self.X = X
        self.graph = graph
        self._known = {self._possible(count): W for count, W in (known or {}).items()}
        self._knn: dict[tuple[int, str], sp.csr_array] = {}
        self._found: dict[str, tuple[int, Neighbours]] = {}  # the most so far, and how many were asked for
        self._given: dict[int, tuple[Any, sp.csr_array]] = {}

    def knn(self, n_neighbors: int, graph: Any = "knn") -> sp.csr_array:
        """The neighbour graph of that name, or a given one; in a tiny set all are neighbours of all."""
        graph = self._meant(graph)
        if not isinstance(graph, str):
            return self.given(graph)
        count = self._possible(n_neighbors)
        if graph == "knn" and count in self._known:
            return self._known[count]
        if (count, graph) not in self._knn:
            self._knn[count, graph] = _graph_of(self._samples, self.neighbours(count, graph), "binary")
        return self._knn[count, graph]

    def shared(self, n_neighbors: int) -> sp.csr_array:
        """How many neighbours two samples share, each its own among them (Jarvis and Patrick 1973)."""
        if not isinstance(self.graph, str):
            W = self.given(self.graph)
            return _common(sp.csr_array(W > 0, dtype=np.float64) + sp.eye_array(W.shape[0], format="csr"))
        found = self.neighbours(n_neighbors, self.graph)
        m, k = found.nearest.shape
        reach = np.concatenate([np.arange(m)[:, None], found.nearest], axis=1).astype(np.int32)
        ends = np.arange(0, reach.size + 1, k + 1)
        common = _common(sp.csr_array((np.ones(reach.size), reach.reshape(-1), ends), (m, m)))
        return with_small_indices(_with_copies(common, np.ones(m), found.group))

    def neighbours(self, n_neighbors: int, graph: str = "knn") -> Neighbours:
        """The neighbours of every sample; a search for many serves for fewer."""
        graph, count = self._meant(graph), self._possible(n_neighbors)
        if graph not in self._found or self._found[graph][0] < count:
            samples = f"{count} neighbours of {self.X.shape[0]} samples"
            with stage(f"finding {samples}") as search:
                found = find_neighbours(self._samples, count, SEARCHES[graph])
                how = "exactly" if found.recall == 1 else f"approximately (recall {found.recall:.3f})"
                search.note = f"{samples} found {how}"
            self._found[graph] = count, found
        return self._found[graph][1].fewer(count)

    def _meant(self, graph: Any) -> Any:
        return self.graph if isinstance(graph, str) and graph == "knn" else graph

    @functools.cached_property
    def _samples(self) -> Any:
        """X where its neighbours are searched: on its GPU, or in NumPy."""
        return self.X if on_gpu(self.X) else on_cpu(self.X)

    def given(self, W: Any) -> sp.csr_array:
        """A graph that a user gave, checked: symmetric, nonnegative, finite, n×n."""
        if id(W) not in self._given:
            self._given[id(W)] = W, check_graph(W, self.X.shape[0])  # W is kept, so that its id stays its own
        return self._given[id(W)][1]

    def _possible(self, n_neighbors: int) -> int:
        return min(n_neighbors, self.X.shape[0] - 1)


def _common(A: sp.csr_array) -> sp.csr_array:
    """``A Aᵀ`` without its diagonal: how much two rows have in common."""
    common = sp.csr_array(A @ A.T)
    common.setdiag(0)
    common.eliminate_zeros()
    return with_small_indices(common)


def check_graph(W: Any, n: int) -> sp.csr_array:
    """A graph of ``n`` samples: symmetric, nonnegative, finite, n×n."""
    if tuple(W.shape) != (n, n):
        msg = f"graph must be {n}×{n} for {n} samples; got shape {tuple(W.shape)}."
        raise ValueError(msg)
    if W.dtype.kind not in "buif":
        msg = f"graph must hold real weights; got {W.dtype}."
        raise TypeError(msg)
    check_sparse("graph", W)
    W = sp.csr_array(W, dtype=np.float64)
    if not np.isfinite(W.data).all() or (W.data < 0).any():
        msg = "graph must hold finite nonnegative weights; it holds NaN, infinity or negative ones."
        raise ValueError(msg)
    if W.nnz and abs(W - W.T).max() > 1e-10 * W.data.max():
        msg = "graph must be symmetric, but it differs from its transpose; W.maximum(W.T) makes it so."
        raise ValueError(msg)
    return with_small_indices(W)


def _graph_of(X: Any, found: Neighbours, weighting: str) -> sp.csr_array:
    """The graph of neighbours that were found."""
    m, k = found.nearest.shape
    if weighting != "cosine":
        X = None  # the others need no samples
    elif m < X.shape[0]:
        X = rows_of(X, found.first)
    each = np.arange(m)
    rows, columns = np.repeat(each, k), found.nearest.reshape(-1)
    weigh = WEIGHTINGS[weighting]
    weights = weigh(X, rows, columns, found.squared.reshape(-1))
    W = sp.csr_array((weights, columns.astype(np.int32), k * np.arange(m + 1)), shape=(m, m))
    W.sort_indices()
    W = sp.csr_array(W.maximum(W.T))
    if m < len(found.group):
        W = _with_copies(W, weigh(X, each, each, np.zeros(m)), found.group)
    W.eliminate_zeros()
    return with_small_indices(W)


def _with_copies(W: sp.csr_array, own: np.ndarray, group: np.ndarray) -> sp.csr_array:
    """The graph of all samples (n, n), copies ``group`` (n,) of distinct ones, from that of these (m, m).

    Codes that are equal for all copies of a sample stay equal, because every copy has the same edges by
    weight. ``own`` (m,) is the weight of a copy for another.
    """
    counts = np.bincount(group)
    if len(counts) == len(group):
        return W
    order, offset = np.argsort(group, kind="stable"), np.cumsum(counts) - counts
    i, j = W.tocoo().coords
    kept = np.bincount(i, W.data * np.maximum(0, 1 - counts[j] / counts[i]), len(counts))
    start, end, weight = (
        np.concatenate(parts)
        for parts in zip(_shared_out(W, counts, offset), _ring(own + kept, counts, offset), strict=True)
    )
    half = sp.csr_array((weight, (order[start], order[end])), shape=(len(group), len(group)))
    return sp.csr_array(half + half.T)


Edges = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Places of both ends where samples are sorted by their sets, and weights; each edge once."""


def _shared_out(W: sp.csr_array, counts: np.ndarray, offset: np.ndarray) -> Edges:
    """Each edge, min(c, d) times its weight, spread evenly over the c copies of one end and d of the other.

    The copies of either end, laid out along [0, 1], are joined by the length in which they overlap: a few
    edges, not c times d.
    """
    upper = sp.triu(W).tocoo()
    i, j = upper.coords
    c, d = counts[i], counts[j]
    edge = np.concatenate([np.repeat(np.arange(len(i)), c), np.repeat(np.arange(len(i)), d)])
    begin = np.concatenate([_count_up(c) * np.repeat(d, c), _count_up(d) * np.repeat(c, d)])  # in 1 / (c d)
    order = np.lexsort((begin, edge))
    edge, begin = edge[order], begin[order]
    first = np.append(True, (edge[1:] != edge[:-1]) | (begin[1:] != begin[:-1]))[: len(edge)]
    edge, begin = edge[first], begin[first]
    last = np.append(edge[1:] != edge[:-1], True)[: len(edge)]
    end = np.where(last, (c * d)[edge], np.roll(begin, -1))
    c, d = c[edge], d[edge]
    weight = upper.data[edge] * np.minimum(c, d) * (end - begin) / (c * d)
    return offset[i][edge] + begin // d, offset[j][edge] + begin // c, weight


def _ring(degree: np.ndarray, counts: np.ndarray, offset: np.ndarray) -> Edges:
    """Edges among the copies of a sample, of ``degree`` (m,) at each.

    They lie in a ring, and steps are powers of two, so that all are a few edges apart.
    """
    steps = np.ceil(np.log2(np.maximum(counts, 2))).astype(int) * (counts > 1)
    number = np.repeat(steps, counts)  # of every copy
    copy, power = np.repeat(np.arange(len(number)), number), _count_up(number)
    own = np.repeat(np.arange(len(counts)), counts)[copy]
    target = offset[own] + (copy - offset[own] + 2**power) % counts[own]
    return copy, target, degree[own] / (2 * steps[own])


def _count_up(counts: np.ndarray) -> np.ndarray:
    """0, 1, …, c − 1 for every c, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _binary(X: Any, rows: np.ndarray, columns: np.ndarray, squared: np.ndarray) -> np.ndarray:
    return np.ones(len(rows))


def _heat(X: Any, rows: np.ndarray, columns: np.ndarray, squared: np.ndarray) -> np.ndarray:
    pairs = np.minimum(rows, columns) * (int(rows.max(initial=0)) + 1) + np.maximum(rows, columns)
    once = squared[np.unique(pairs, return_index=True)[1]]  # a mutual edge counts once
    width = once.sum() / max(len(once), 1)
    return np.exp(-squared / width) if width > 0 else np.ones(len(rows))


def _cosine(X: Any, rows: np.ndarray, columns: np.ndarray, squared: np.ndarray) -> np.ndarray:
    X = on_cpu(X)
    lengths = np.sqrt(squared_row_norms(X.astype(np.float64, copy=False)))
    scale = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    cosines = np.empty(len(rows))
    step = max(1, BLOCK // X.shape[1])
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        one, other = X[rows[block]].astype(np.float64), X[columns[block]]
        products = one.multiply(other) if sp.issparse(X) else one * other
        cosines[block] = np.asarray(products.sum(axis=1)).reshape(-1)
        cosines[block] *= scale[rows[block]] * scale[columns[block]]
    return np.clip(cosines, 0, 1)


WEIGHTINGS: dict[str, Callable[..., np.ndarray]] = {"binary": _binary, "heat": _heat, "cosine": _cosine}
"""Edge weights by name: ``(X, rows, columns, squared distances) -> weights``."""
