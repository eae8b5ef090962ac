"""Consensus parts: what many restarts of a factorisation agree on (cNMF, Kotliar et al. 2019)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_samples
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from lognmf.clustering.kmeans import cluster
from lognmf.core.arrays import to_numpy
from lognmf.graph import Graphs
from lognmf.grid.plan import check_model
from lognmf.models import LogSparseNMF
from lognmf.models.base import BasisAndCodesModel
from lognmf.models.engine import draw
from lognmf.models.validation import Samples, check_samples, read_samples
from lognmf.models.weights import fit_batch
from lognmf.parameters import check_integer, check_positive, check_random_state
from lognmf.progress import stage

NEIGHBOUR_SHARE = 0.3
"""A part is compared with as many nearest neighbours as this share of the restarts: cNMF's number."""

RANDOM_STARTS = ("random", "scaled")
"""Starts that differ from restart to restart."""


@dataclass(frozen=True, eq=False)
class Consensus:
    """Consensus parts with the codes of the samples, and how stable they are.

    Parameters
    ----------
    model : fitted estimator
        Its ``components_`` are the consensus parts, ``embedding_`` the best codes for them.
    stability : ndarray of shape (k,)
        Mean silhouette of the restarts' parts behind each consensus part, largest first, in the order of
        ``components_``: near 1 if the restarts agree on it, near 0 if it runs into another one.
    support : ndarray of shape (k,)
        Share of the restarts that have a part behind each consensus part.
    parts : ndarray of shape (R, p)
        The parts of all restarts, of unit norm, k rows per restart; restarts in order.
    distance : ndarray of shape (R,)
        Mean distance of each part to its nearest neighbours, the reason to drop it.
    labels : ndarray of shape (R,)
        The consensus part that each part is behind; −1 if it was dropped.
    restart_errors : ndarray of shape (n_restarts,)
        ``reconstruction_err_`` of the restarts; that of the consensus is ``model.reconstruction_err_``.
    """

    model: Any
    stability: np.ndarray
    support: np.ndarray
    parts: np.ndarray = field(repr=False)
    distance: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    restart_errors: np.ndarray = field(repr=False)

    @property
    def n_dropped(self) -> int:
        """Number of parts that were dropped."""
        return int(np.sum(self.labels < 0))


def consensus_components(
    X: Any,
    n_components: int,
    *,
    model: Any = None,
    n_restarts: int = 20,
    threshold: float = 0.5,
    random_state: Any = None,
) -> Consensus:
    """Find the parts that many restarts agree on.

    The model is fitted from ``n_restarts`` random starts, as one batch. The parts of all of them, scaled to
    unit norm, are put together; those far from their nearest neighbours are dropped, the others
    clustered into k groups by k-means. The median of a group is a consensus part. The parts stay as
    they are: only the codes of the samples are fitted to them. A fit that went on from there would end in the
    minimum of one restart.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows, as for ``fit``.
    n_components : int
        Number of components k, at least 2.
    model : estimator, optional
        Its parameters apply to every restart; it must take U0 and V0. Weights that are "auto" are chosen
        once, by a fit of its own, and given to all restarts. A start that is the same for every seed is
        replaced by "scaled". Default: `LogSparseNMF`.
    n_restarts : int, default=20
        Number of restarts, at least 2.
    threshold : float, default=0.5
        Parts whose mean distance to their nearest neighbours (0.3 ``n_restarts`` of them) is larger are
        dropped. Unit vectors of cosine 0.875 have the distance 0.5.
    random_state : int, RandomState or None, default=None
        Seed of the starts and of k-means.

    Returns
    -------
    Consensus
        The fitted model and the stability of every part.

    Raises
    ------
    ValueError, TypeError
        If X or an argument cannot be used, or the threshold leaves fewer than k parts.

    See Also
    --------
    choose_components : Recommends the number of components.

    Notes
    -----
    D. Kotliar et al.: Identifying gene expression programs of cell-type identity and cellular activity
    with single-cell RNA-Seq. eLife 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import consensus_components
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((60, 3)) @ np.repeat(np.eye(3), 4, axis=1) + 0.01 * rng.random((60, 12))
    >>> consensus = consensus_components(X, 3, n_restarts=10, random_state=0)
    >>> consensus.model.components_.shape, bool(consensus.stability.min() > 0.9)
    ((3, 12), True)
    """
    check_integer("n_components", n_components, 2)
    check_integer("n_restarts", n_restarts, 2)
    check_positive("threshold", threshold)
    check_random_state(random_state)
    estimator = _restarting(model, n_components, n_restarts)
    samples = read_samples(X, estimator=estimator)
    estimator.set_params(**_chosen_weights(estimator, samples, random_state))
    parts, errors = _restarts(estimator, samples, random_state)
    distance = _neighbour_distance(parts, n_restarts)
    kept = np.flatnonzero(distance <= threshold)
    enough = len(kept) > n_components
    groups = cluster(parts[kept], n_components, random_state=random_state) if enough else np.zeros(0)
    if len(np.unique(groups)) < n_components:
        msg = (
            f"threshold={threshold} leaves {len(kept)} of {len(parts)} parts, too few different ones for "
            f"{n_components} groups. Choose a larger threshold, more restarts or fewer components."
        )
        raise ValueError(msg)
    labels = np.full(len(parts), -1)
    labels[kept], stability = _by_stability(parts[kept], groups)
    medians = np.stack([np.median(parts[labels == j], axis=0) for j in range(len(stability))])
    restart = np.arange(len(parts)) // n_components
    support = np.array([len(np.unique(restart[labels == j])) / n_restarts for j in range(len(stability))])
    fitted = _with_parts(estimator, medians, samples)
    return Consensus(fitted, stability, support, parts, distance, labels, errors)


def _restarting(model: Any, n_components: int, n_restarts: int) -> Any:
    """The estimator of which a batch of restarts is fitted, checked."""
    estimator = check_model(LogSparseNMF() if model is None else model, None, None)
    if not isinstance(estimator, BasisAndCodesModel):
        msg = f"model must take U0 and V0, such as PlainNMF or LogSparseNMF; got {type(estimator).__name__}."
        raise TypeError(msg)
    check_integer("max_iter", estimator.max_iter, 1)
    if estimator.init in estimator.spec.starts and estimator.init not in RANDOM_STARTS:
        estimator.set_params(init="scaled")
    estimator.set_params(n_components=n_components, n_init=n_restarts, warm_start=False)
    estimator.check_parameters()
    return estimator


def _chosen_weights(estimator: Any, samples: Samples, random_state: Any) -> dict[str, float]:
    """The weights that the estimator chooses in one fit, if any is "auto"."""
    names = estimator.auto_weights()
    if not names:
        return {}
    with stage("choosing weights"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = clone(estimator).set_params(n_init=1, random_state=random_state).fit_samples(samples)
    return {name: vars(fitted)[f"{name}_"] for name in names}


def _restarts(estimator: Any, samples: Samples, random_state: Any) -> tuple[np.ndarray, np.ndarray]:
    """Unit-norm parts of every restart (R, p), k rows each, and the reconstruction error of every restart."""
    data = check_samples(estimator, samples, reset=True)
    graphs = Graphs(data.X)
    estimator.check_data(data, graphs)
    unit = estimator.unit_of(data)
    scaled = data.in_unit(unit)
    first = draw(estimator, scaled, graphs, random_state)
    options: Any = {"unit": unit, "max_iter": estimator.max_iter, "settings": estimator.n_init}
    fits = fit_batch(estimator, scaled, graphs, first, **options)
    U = to_numpy(fits.factors[0]).astype(np.float64)
    parts = np.moveaxis(U, 0, 2).reshape(-1, data.shape[1])
    return normalize(parts), fits.reconstruction_err


def _neighbour_distance(parts: np.ndarray, n_restarts: int) -> np.ndarray:
    """Mean distance of every part to its nearest others; infinite for a part that is zero."""
    count = max(1, int(NEIGHBOUR_SHARE * n_restarts))
    nearest = NearestNeighbors(n_neighbors=count).fit(parts)
    distance = nearest.kneighbors()[0].mean(axis=1)
    return np.where(parts.any(axis=1), distance, np.inf)


def _by_stability(parts: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The groups numbered from the most stable on, and the stability of each."""
    silhouettes = silhouette_samples(parts, groups)
    stability = np.array([silhouettes[groups == j].mean() for j in range(groups.max() + 1)])
    order = np.argsort(-stability, kind="stable")
    return np.argsort(order)[groups], stability[order]


def _with_parts(estimator: Any, parts: np.ndarray, samples: Samples) -> Any:
    """The estimator with these ``parts`` (k, p) and the best codes for them."""
    fixed = clone(estimator).set_params(n_init=1, max_iter=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # no iteration is made on purpose
        codes = np.ones((samples.shape[0], len(parts)))
        for _ in range(2):
            fixed.fit_samples(samples, {"U0": parts.T, "V0": codes})
            codes = fixed.transform(samples)
    return fixed.set_params(max_iter=estimator.max_iter)
