"""Exact nearest neighbours among the rows of torch tensors, dense or in CSR format, on their device.

As in ``dense.py``: candidates by products, their distances by differences. Many dense samples are compared in
groups first (`_by_groups`). What one stage does not decide is left to the next: products in single precision,
in double precision, and last the distances to all samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lognmf.core.arrays import to_numpy
from lognmf.core.matrices import is_csr_tensor
from lognmf.core.torch.sparse import dense_rows, entry_rows, squared_norms
from lognmf.graph.dense import slack

SPARE = 11
"""Extra candidates per sample, so that few samples need more than products."""

NUMBERS = 1 << 28
"""Numbers of a block of products, or of differences, on a GPU; on a CPU a sixteenth of the square root."""

QUERIES = 4096
"""Samples that are multiplied with all others at a time, at most."""

GROUP = 32
"""How many consecutive samples form a group, of which only the smallest distance is written down."""

GROUPS = 64
"""How many groups of a sample are measured at most; if more could hold a neighbour, later stages decide."""

GROUPED_FROM = 4096
"""Dense samples from which on groups are used."""

Tensor = Any


def nearest_tensor(Y: Tensor, X: Tensor, k: int, *, but_itself: bool) -> tuple[np.ndarray, np.ndarray]:
    """The k rows of ``X`` (n, p) nearest to each of ``Y`` (m, p), and squared distances: (m, k), (m, k)."""
    rows = torch.arange(Y.shape[0], device=X.device)
    found = torch.empty((len(rows), k), dtype=torch.int64, device=X.device)
    squared = torch.empty((len(rows), k), dtype=torch.float64, device=X.device)
    count = min(k + SPARE, X.shape[0] - but_itself)
    if not is_csr_tensor(X) and X.shape[0] >= GROUPED_FROM and k <= GROUPS // 2:
        found, squared, sure = _by_groups(Y, X, k, count, but_itself)
        rows = rows[~sure]
    for dtype in (torch.float32, torch.float64):
        if len(rows):
            found[rows], squared[rows], sure = _by_products(Y, X, rows, k, count, but_itself, dtype)
            rows = rows[~sure]
    for some in rows.split(_height(X, X.shape[0] * X.shape[1])):
        found[some], squared[some] = _settled(Y, X, some, k, but_itself)
    return to_numpy(found).astype(np.intp, copy=False), to_numpy(squared)


def _numbers(X: Tensor) -> int:
    return NUMBERS if X.is_cuda else 1 << 20


def _height(X: Tensor, a_row: int) -> int:
    """Rows of a block that has so many numbers in each."""
    return max(1, min(QUERIES, _numbers(X) // max(1, a_row)))


@dataclass(frozen=True, eq=False)
class _Points:
    """Samples as they enter products: less ``shift``, in units of ``unit``, of type ``dtype``."""

    X: Tensor
    shift: Tensor | None  # (p,); None for sparse samples, which would not stay sparse
    unit: float
    dtype: Any

    @classmethod
    def of(cls, X: Tensor, dtype: Any) -> _Points:
        if is_csr_tensor(X):
            return cls(X, None, float(X.values().abs().max()) if len(X.values()) else 1.0, dtype)
        shift = X.mean(dim=0, dtype=torch.float64).to(X.dtype)
        high, low = X.max(dim=0).values, X.min(dim=0).values
        return cls(X, shift, float(torch.maximum(high - shift, shift - low).max()) or 1.0, dtype)

    def dense(self, X: Tensor, rows: Tensor) -> Tensor:
        """Some rows of ``X`` as they enter products."""
        some = _dense(X, rows)
        return ((some if self.shift is None else some - self.shift) / self.unit).to(self.dtype)

    def distances(self, left: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Squared distances of others to all samples, less ‖y‖², in blocks of columns with their first."""
        if self.shift is None:
            data = self.X.to(self.dtype)
            yield 0, (squared_norms(data, self.unit)[:, None] - 2 / self.unit * (data @ left.T)).T
            return
        n, p = self.X.shape
        step = max(1, _numbers(self.X) // max(len(left), p))
        for start in range(0, n, step):
            right = self.dense(self.X, slice(start, start + step))
            yield start, torch.addmm(squared_rows(right)[None, :], left, right.T, alpha=-2)


def squared_rows(X: Tensor) -> Tensor:
    """``‖x‖²`` of the rows of a dense tensor."""
    return torch.einsum("ij,ij->i", X, X)


def _dense(X: Tensor, rows: Any) -> Tensor:
    return dense_rows(X, rows) if is_csr_tensor(X) else X[rows]


@contextmanager
def _products_of_tensor_cores(X: Tensor) -> Iterator[None]:
    """On a GPU, products use the eleven leading bits of each number."""
    before = torch.get_float32_matmul_precision()
    if X.is_cuda:
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _rounded(X: Tensor) -> Tensor:
    """Numbers in single precision rounded to eleven bits, which tensor cores multiply exactly."""
    return ((X.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def _by_groups(Y: Tensor, X: Tensor, k: int, count: int, but_itself: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Neighbours of all ``Y`` among dense ``X``, their squared distances, and which are sure.

    Of the distances to each group of samples only the smallest is written. Products take rounded samples,
    which are samples nearby: a distance changes by no more than the two samples are moved. A group can hold a
    neighbour only if its smallest distance, less that, is below the k-th smallest of all groups, plus that;
    these few groups are measured sample by sample.
    """
    points, n = _Points.of(X, torch.float32), X.shape[0]
    exact = points.dense(X, slice(None))
    right = _rounded(exact)
    farthest = max(float(torch.linalg.vector_norm(a - b, dim=1).max()) for a, b in _pairs(exact, right))
    sizes, parts = squared_rows(right), []
    for some in torch.arange(Y.shape[0], device=X.device).split(_height(X, -(-n // GROUP))):
        left = points.dense(Y, some)
        rounded = _rounded(left)
        moved = torch.linalg.vector_norm(left - rounded, dim=1) + farthest
        itself = some if but_itself else None
        near, groups = _nearest_groups(rounded, right, sizes, itself)
        near = near + squared_rows(rounded)[:, None]
        error = slack(X.shape[1], np.float32, squared_rows(left)[:, None], near)
        at_least, at_most = torch.sqrt((near - error).clamp(min=0)), torch.sqrt((near + error).clamp(min=0))
        possible = at_least <= at_most[:, max(k, 2) - 1, None] + 2 * moved[:, None]
        sure = ~possible[:, -1] if groups.shape[1] > GROUPS else torch.ones_like(possible[:, -1])
        rough, places = _best_of_groups(exact, left, itself, groups[:, :GROUPS], possible[:, :GROUPS], count)
        found, squared = _measured(Y, X, some, places)
        rough = rough.double() ** 2
        bound = rough - slack(X.shape[1], np.float32, squared_rows(left).double(), rough)
        sure &= squared[:, k - 1] < bound * points.unit * points.unit
        parts.append((found[:, :k], squared[:, :k], sure))
    found, squared, sure = (torch.cat(side) for side in zip(*parts, strict=True))
    return found, squared, sure


def _pairs(one: Tensor, other: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The same few rows of both, at a time."""
    height = _height(one, one.shape[1])
    return zip(one.split(height), other.split(height), strict=True)


def _nearest_groups(
    left: Tensor, right: Tensor, sizes: Tensor, itself: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Smallest distances, less ‖y‖², of the nearest groups, one more than are measured, and their numbers."""
    n, m = len(right), len(left)
    smallest = torch.empty((m, -(-n // GROUP)), dtype=left.dtype, device=left.device)
    step = max(1, _numbers(right) // (m * GROUP)) * GROUP
    for start in range(0, n, step):
        with _products_of_tensor_cores(right):
            block = torch.addmm(
                sizes[None, start : start + step], left, right[start : start + step].T, alpha=-2
            )
        if itself is not None:
            here = torch.nonzero((itself >= start) & (itself < start + step))[:, 0]
            block[here, itself[here] - start] = torch.inf
        if over := block.shape[1] % GROUP:
            block = torch.nn.functional.pad(block, (0, GROUP - over), value=torch.inf)
        first = start // GROUP
        width = block.shape[1] // GROUP
        torch.amin(block.view(m, width, GROUP), dim=2, out=smallest[:, first : first + width])
    return torch.topk(smallest, min(GROUPS + 1, smallest.shape[1]), dim=1, largest=False)


def _best_of_groups(
    right: Tensor, left: Tensor, itself: Tensor | None, groups: Tensor, possible: Tensor, count: int
) -> tuple[Tensor, Tensor]:
    """The ``count`` nearest samples in the ``possible`` groups: the last one's distance, and all places."""
    within = torch.arange(GROUP, device=left.device)
    distances = torch.full((*groups.shape, GROUP), torch.inf, device=left.device)
    pairs = torch.nonzero(possible)
    for some in pairs.split(_height(right, GROUP * right.shape[1])):
        rows, columns = some.T
        places = groups[rows, columns][:, None] * GROUP + within
        theirs = right[places.clamp(max=len(right) - 1)]
        apart = torch.linalg.vector_norm(theirs.sub_(left[rows][:, None, :]), dim=2)
        apart[places >= len(right)] = torch.inf
        if itself is not None:
            apart[places == itself[rows][:, None]] = torch.inf
        distances[rows, columns] = apart
    best, order = torch.topk(distances.flatten(1), count, dim=1, largest=False)
    places = torch.gather(groups, 1, order // GROUP) * GROUP + order % GROUP
    return best[:, -1], places


def _by_products(
    Y: Tensor, X: Tensor, rows: Tensor, k: int, count: int, but_itself: bool, dtype: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Neighbours of some ``rows`` of ``Y`` by products of this type, their distances, and which are sure."""
    points, parts = _Points.of(X, dtype), []
    everybody = count == X.shape[0] - but_itself
    for some in rows.split(_height(X, X.shape[0] if is_csr_tensor(X) else X.shape[1])):
        left = points.dense(Y, some)
        values, places = _best(points, left, some if but_itself else None, count)
        found, squared = _measured(Y, X, some, places)
        sizes = to_numpy(squared_rows(left).double())
        rough = to_numpy(values[:, -1].double()) + sizes
        kind = np.float32 if dtype == torch.float32 else np.float64
        bound = torch.as_tensor(rough - slack(X.shape[1], kind, sizes, rough), device=X.device)
        sure = squared[:, k - 1] < bound * points.unit * points.unit
        parts.append((found[:, :k], squared[:, :k], sure | everybody))
    found, squared, sure = (torch.cat(side) for side in zip(*parts, strict=True))
    return found, squared, sure


def _best(points: _Points, left: Tensor, own: Tensor | None, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` smallest distances of each row and their places; ``own`` are rows to leave out."""
    values = torch.empty((len(left), 0), dtype=left.dtype, device=left.device)
    places = torch.empty((len(left), 0), dtype=torch.int64, device=left.device)
    for start, block in points.distances(left):
        if own is not None:
            here = torch.nonzero((own >= start) & (own < start + block.shape[1]))[:, 0]
            block[here, own[here] - start] = torch.inf
        new, where = torch.topk(block, min(count, block.shape[1]), dim=1, largest=False)
        values, places = torch.cat([values, new], dim=1), torch.cat([places, where + start], dim=1)
        if values.shape[1] > count:
            values, order = torch.topk(values, count, dim=1, largest=False)
            places = torch.gather(places, 1, order)
    return values.sort(dim=1).values, places


def _measured(Y: Tensor, X: Tensor, rows: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Candidates ``places`` (m, c), the nearest first by differences, of equal ones the first; distances."""
    places, squared = places.sort(dim=1).values, []
    for some, others in zip(
        *(part.split(_height(X, places.shape[1] * X.shape[1])) for part in (rows, places)), strict=True
    ):
        theirs = _dense(X, others.reshape(-1)).reshape(*others.shape, -1)
        squared.append(_squares(_dense(Y, some)[:, None, :], theirs))
    distances, order = torch.cat(squared).sort(dim=1, stable=True)
    return torch.gather(places, 1, order), distances


def _squares(one: Tensor, other: Tensor) -> Tensor:
    """Squared distances along the last axis, in double precision."""
    difference = one.double() - other.double()
    return torch.einsum("...p,...p->...", difference, difference)


def _settled(Y: Tensor, X: Tensor, rows: Tensor, k: int, but_itself: bool) -> tuple[Tensor, Tensor]:
    """The k nearest to some ``rows`` of ``Y`` by their distances to all of ``X``, and these, squared."""
    one, each = _dense(Y, rows)[:, None, :], torch.arange(X.shape[0], device=X.device)
    blocks = each.split(_height(X, len(rows) * X.shape[1]))
    squared = torch.cat([_squares(one, _dense(X, some)[None, :, :]) for some in blocks], dim=1)
    if but_itself:
        squared[torch.arange(len(rows), device=X.device), rows] = torch.inf
    distances, order = squared.sort(dim=1, stable=True)
    return order[:, :k], distances[:, :k]


_MIX, _SHIFTED = -7046029254386353131, -2960836687055217517  # odd numbers that spread over all 64 bits


def hashes(X: Tensor) -> np.ndarray:
    """A number for each row (n,): equal for equal rows, and hardly ever for others."""
    n = X.shape[0]
    if is_csr_tensor(X):
        marks = _mixed(X.values(), X.col_indices().long())
        marks[X.values() == 0] = 0  # a stored zero is no entry
        total = torch.zeros(n, dtype=torch.int64, device=X.device).index_add_(0, entry_rows(X), marks)
        return to_numpy(total)
    columns = torch.arange(X.shape[1], device=X.device)
    return to_numpy(torch.cat([_mixed(some, columns).sum(dim=1) for some in X.split(_height(X, X.shape[1]))]))


def _mixed(values: Tensor, columns: Tensor) -> Tensor:
    """A random-looking number for each entry, by its value and its column; −0 is 0."""
    values = (values + 0.0).contiguous()
    bits = values.view(torch.int32 if values.element_size() == 4 else torch.int64).long()
    marks = (bits ^ (bits >> 32)) * _MIX
    marks = marks ^ ((columns + 1) * _SHIFTED)
    marks = (marks ^ (marks >> 29)) * _MIX
    return marks ^ (marks >> 32)


def equal_rows(X: Tensor, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each of ``rows`` of ``X`` equals that of ``others``, (m,)."""
    pairs = torch.as_tensor(np.stack([rows, others]), device=X.device)
    equal = [
        (_dense(X, one) == _dense(X, other)).all(dim=1)
        for one, other in zip(*(side.split(_height(X, X.shape[1])) for side in pairs), strict=True)
    ]
    return to_numpy(torch.cat(equal)) if equal else np.ones(0, dtype=bool)
