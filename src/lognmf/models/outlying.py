"""Which samples are outliers: far from their neighbours, and badly fitted by parts of the others.

A fit of all samples learns from outliers before it is asked what they are, and then fits them. The neighbours
of a sample do not depend on a fit. So samples near to others say which residuals are usual, gamma leaves the
larger ones to the outlier part, and the parts are fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import to_numpy
from lognmf.core.data import BLOCK_NUMBERS, Data, InMemory
from lognmf.core.rows import Rows, here
from lognmf.core.terms import ROW_NORMS
from lognmf.core.terms.robust import kept_share
from lognmf.models.engine import Fit, Setup, fit
from lognmf.progress import stage

NEVER = 0.1
"""Residuals below this share of the typical norm are never unusual: 99 % of the square is explained."""

QUANTILE, BEYOND = 0.85, 1.5
"""Logarithms of usual numbers are at most this many times as far above the median as this quantile is. So at
most 15 % are unusual: a larger group that is alike is no outlier but a cluster."""

GOOD, USUAL = 0.8, 0.95
"""The share of the samples that are taken for good ones, which are near to others and fitted well; residuals
up to this quantile of theirs are usual."""

NEIGHBOURS, MOST = 3, 1000
"""Neighbours of a sample, and the number of random samples among which they are sought."""

EVEN = 0.3
"""Features are divided by their standard deviation and this share of the mean one: else a few decide."""

FLOOR, HALF = 0.1, 0.5
"""Distances and residuals count from this share of their largest usual value on, residuals half as much."""

ROUNDS = (100, 20)
"""Maximum number of iterations of the fits with gamma, which is set before each of them."""

LOOSE, USUAL_TOL = 10.0, 1e-5
"""They stop at this multiple of ``tol``, which has the usual value where it is 0."""

MOST_RESIDUALS = 100_000
"""Residuals that come here from workers; of more samples, evenly spaced ones."""

FEWEST = 20
"""Samples needed to speak of usual ones by their neighbours."""


def usual(values: np.ndarray) -> float:
    """The largest usual one of ``values`` (n,), which are logarithms."""
    median, high = np.quantile(values, [0.5, QUANTILE])
    return float(median + BEYOND * (high - median))


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Samples of a fit, among which neighbours are sought, with features divided by ``spread`` (p,)."""

    samples: Any
    spread: np.ndarray

    @classmethod
    def of(cls, data: Data, large: Data | None = None) -> tuple[Neighbours, Rows]:
        """Random samples of ``data``, and the distances (n,) of all of them, or of ``large`` ones instead."""
        n = data.shape[0]
        index = np.arange(n)
        if n > MOST:
            index = np.sort(np.random.default_rng(0).choice(n, MOST, replace=False))
        some = _rows(data if isinstance(data, InMemory) and n <= MOST else data.take_rows(index), slice(None))
        spread = np.sqrt(np.maximum(_means(some, 2) - _means(some, 1) ** 2, 0))
        spread = spread + (EVEN * spread.mean() or 1.0)
        found = cls(_divided(some, spread), spread)
        del some  # at most 1,000 samples, but all of a small set
        places = np.full(n, -1)
        places[index] = np.arange(len(index))
        rows: Any = data
        of_rows = rows.rows_of(places) if data.distributed else places
        (distances, *_), _ = (data if large is None else large).map_rows(_distances, of_rows, shared=(found,))
        return found, distances

    @property
    def norm(self) -> float:
        """The root mean square of the samples' norms."""
        return float(np.sqrt(_means(self.samples, 2).sum()))

    def distances(self, block: InMemory, places: np.ndarray | None = None) -> np.ndarray:
        """The distance (m,) of every sample of a block from the mean of its nearest neighbours.

        ``places`` (m,) are those of the samples themselves among `samples`, or −1: none is its own neighbour.
        """
        count = min(NEIGHBOURS, self.samples.shape[0] - (places is not None))
        if count < 1:
            return np.zeros(block.shape[0])
        # On workers, the arrays of a message are of the block's library.
        samples = self.samples if sp.issparse(self.samples) else to_numpy(self.samples)
        squares, spread, found = _squares(samples), to_numpy(self.spread), []
        n, p = block.shape
        step = max(16, BLOCK_NUMBERS // (len(squares) + p))
        for start in range(0, n, step):
            some = slice(start, min(start + step, n))
            X = _divided(_rows(block, some), spread)
            products = _dense(X @ samples.T)
            far = -2 * products
            far += squares
            if places is not None:
                mine = np.flatnonzero(places[some] >= 0)
                far[mine, places[some][mine]] = np.inf
            near = np.argpartition(far, count - 1, axis=1)[:, :count]
            shares, ends = np.full(near.size, 1 / count), np.arange(0, near.size + 1, count)
            means = sp.csr_array((shares, near.ravel(), ends), products.shape) @ samples
            inner = np.take_along_axis(products, near, axis=1).mean(axis=1)
            found.append(np.sqrt(np.maximum(_squares(X) - 2 * inner + _squares(means), 0)))
        return np.concatenate(found)


def _distances(
    block: InMemory, places: np.ndarray, neighbours: Neighbours
) -> tuple[tuple[np.ndarray], tuple[()]]:
    return (neighbours.distances(block, to_numpy(places)),), ()


def choose_gamma(setup: Setup, found: Fit, _: Sequence[str]) -> Fit:
    """Gamma such that residuals of good samples are no outliers, and a fit that leaves the others out.

    It begins where the first fit did: parts that describe outliers would not be given up.
    """
    data, model = setup.data, setup.model
    distances = np.ones(len(here(found.squared_residuals, MOST_RESIDUALS)))
    if data.shape[0] >= FEWEST:
        distances = to_numpy(here(Neighbours.of(data)[1], MOST_RESIDUALS))
    # Sparse factors, chosen next, have larger residuals.
    more = 1 + model.extra_error if "auto" in (model.alpha, model.beta) else 1.0
    norm = float(np.sqrt(np.mean(to_numpy(data.squared_norms))))
    row_norm = found.rule.problem.fit.row_norm
    tol = LOOSE * (model.tol or USUAL_TOL)
    with stage("choosing gamma", len(ROUNDS), "fits") as shown:
        for done, most in enumerate(ROUNDS):
            residuals = to_numpy(here(found.squared_residuals, MOST_RESIDUALS)).T ** 0.5
            limits = [more * _largest_of_good(distances, r, norm) for r in residuals]
            gamma = np.array([outlier_weight(row_norm, limit) for limit in limits])
            few = replace(setup, max_iter=min(most, setup.max_iter))
            start = setup.first if done == 0 and setup.first is not None else found.state
            found = fit(few, start, {**found.weights, "gamma": gamma}, tol)
            shown.move(done + 1)
    return found


def _largest_of_good(distances: np.ndarray, r: np.ndarray, norm: float) -> float:
    """The largest usual residual among ``r`` (n,) of samples that are near to others and fitted well."""
    scores = Score.of(distances, r, (0.0, norm))(distances, r)
    good = r[scores <= np.quantile(scores, GOOD)]
    return max(NEVER * norm, float(np.quantile(good, USUAL))) or 1.0


def usual_residual(r: np.ndarray, norm: float) -> float:
    """The largest usual residual among ``r`` (n,) of samples whose typical norm is ``norm``."""
    least = NEVER * norm
    return max(least, float(np.exp(usual(np.log(np.maximum(r, 1e-3 * least))))) if least else 0.0) or 1.0


def outlier_weight(row_norm: Any, limit: float) -> float:
    """The least gamma at which a residual of norm ``limit`` (``> 0``) is no outlier."""
    low, high = limit, (1 + limit) ** 2
    for _ in range(60):
        middle = (low + high) / 2
        kept = kept_share(row_norm, np.array([[limit]]), np.array([middle / 2]))
        low, high = (low, middle) if kept[0, 0] == 1 else (middle, high)
    return high


def outlier_limit(row_norm: Any, gamma: float) -> float:
    """The largest norm of a residual that is no outlier at this gamma."""
    low, high = 0.0, 1.0 + gamma
    for _ in range(60):
        middle = (low + high) / 2
        kept = kept_share(row_norm, np.array([[middle]]), np.array([gamma / 2]))
        low, high = (middle, high) if kept[0, 0] == 1 else (low, middle)
    return low


def usual_gamma(model: Any, data: Any) -> float:
    """Gamma at which usual residuals of a robust ``model``, fitted to ``data``, are no outliers."""
    limit = model._limited(data)
    norms = to_numpy((data if limit is None else limit.data).squared_norms)
    norm = float(np.sqrt(np.mean(norms))) / model.scale_
    return outlier_weight(
        ROW_NORMS[model.row_norm](), usual_residual(to_numpy(model.residual_norm_) / model.scale_, norm)
    )


@dataclass(frozen=True)
class Score:
    """How unusual a sample is, by its distance to its neighbours and its residual, in these units.

    Samples with a larger one than ``limit`` are outliers; with a residual below ``never`` it is not larger.
    """

    distance: float
    residual: float
    never: float
    limit: float = np.inf

    @classmethod
    def of(cls, distances: np.ndarray, residuals: np.ndarray, norms: tuple[float, float]) -> Score:
        """The score for samples with these ``distances`` and ``residuals`` (n,), and typical ``norms``."""
        least = [NEVER * norm or 1.0 for norm in norms]
        high = [float(np.quantile(values, 0.9)) for values in (distances, residuals)]
        distance, residual = np.maximum(high, least).tolist()
        found = cls(distance, residual, least[1])
        return replace(found, limit=usual(found(distances, residuals)))

    def __call__(self, distances: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """The score (m,)."""
        far, bad = np.log(distances / self.distance + FLOOR), np.log(residuals / self.residual + FLOOR)
        return np.minimum(far + HALF * bad, self.limit + np.log(np.maximum(residuals / self.never, 1e-6)))


def _rows(data: InMemory, some: slice) -> Any:
    """A few rows as a NumPy array, or SciPy's CSR."""
    return data.rows(some) if sp.issparse(data.X) else to_numpy(data.dense_rows(some)).astype(np.float64)


def _divided(X: Any, spread: np.ndarray) -> Any:
    return sp.csr_array(X @ sp.diags_array(1 / spread)) if sp.issparse(X) else X / spread


def _squares(X: Any) -> np.ndarray:
    """Squared norms of the rows, (m,)."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)


def _means(X: Any, power: int) -> np.ndarray:
    """Means of powers of the features, (p,)."""
    if sp.issparse(X):
        return np.asarray(X.power(power).mean(axis=0)).ravel()
    return np.einsum("ij,ij->j", X, X) / len(X) if power == 2 else X.mean(axis=0)


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X
