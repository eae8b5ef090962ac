"""Clusters without labels: the best of several families of clusterings, with a decomposition for it."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state as generator
from sklearn.utils.validation import check_is_fitted

from lognmf.clustering import cluster, numbered_by_parts
from lognmf.core.arrays import on_gpu, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.matrices import on_cpu
from lognmf.graph import Graphs
from lognmf.graph.neighbours import distinct_rows
from lognmf.grid.candidates import Candidates, Clustering, fit_from, with_different_starts
from lognmf.grid.codes import Encodes
from lognmf.grid.components import most_modular
from lognmf.grid.plan import check_clusters, check_model, place
from lognmf.grid.sampled import fit_sampled, predict_blocks, several_blocks
from lognmf.grid.tune import default_grid, tune
from lognmf.grid.vote import alike, vote
from lognmf.models.base import FactorModel, Spec
from lognmf.models.starts import NEIGHBOURS
from lognmf.models.validation import Samples, check_graph_parameters, check_samples, read_samples
from lognmf.models.weights import OUTLIERS
from lognmf.parameters import (
    check_choice,
    check_integer,
    check_nonnegative,
    check_positive,
    check_random_state,
)
from lognmf.progress import printed, say, stage

UPDATES = 10
"""Updates of a named model from the best clustering."""

_WEIGHTS = {"alpha": 0.01, "beta": 0.001, "lam": 1.0, "solver": "mu", "max_iter": UPDATES}
SETTINGS = {"LS-NMF": _WEIGHTS, "RLS-NMF": {**_WEIGHTS, "gamma": OUTLIERS.without}}
"""Parameters of a model given by name; others have ``max_iter`` alone. Its gamma follows from residuals."""

AUTO = "auto"
"""The number of clusters is to be chosen."""

MOST_CLUSTERS = 30
"""The largest number that is tried then."""

EFFORTS = {"quick": 1, "grid": 3}
"""Numbers of seeds by effort."""


class NMFClustering(Encodes, ClusterMixin, BaseEstimator):
    """Clusters of the samples, chosen without labels, and a nonnegative factorisation that goes with them.

    The samples are clustered by spectral clustering of three neighbour graphs, and by k-means in the space of
    the leading singular vectors; the clustering of largest modularity on the neighbour graph wins, or that
    which cuts no edge where the graph has just as many pieces as there are to be clusters. The model
    is then fitted from it, and k-means on its codes takes its place if it has the larger modularity and is no
    worse in normalised cut and balance. With ``effort="grid"`` so do the fits of a whole grid of weights.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters, and of components of the model. "auto": a guess from 2 to 30, that of
        `choose_components` with ``by="modularity"``.
    model : estimator, or a name in `MODELS`, default="LS-NMF"
        The factorisation. An estimator is fitted with its own parameters, but for ``n_components`` and
        ``random_state``; a name stands for ten updates with weights that suit samples of unit norm.
    effort : {"quick", "grid"}, default="quick"
        "quick" makes one fit. "grid" tries three seeds, and `tune` of the model for each of them with another
        spectral start.
    n_neighbors : int, default=5
        Neighbours per sample in the graph; at most half of the other samples are used.
    graph : {"knn", "exact", "approximate"} or sparse matrix of shape (n, n), default="knn"
        Neighbour graph of the samples, built from X or given (symmetric, nonnegative), also for the model if
        its own ``graph`` is "knn". With "knn" here the ``graph`` of a given model serves the clusters too.
        "knn" is "approximate" for large dense X, else "exact", as in `knn_graph`; ``verbose=1`` says which.
    n_init : int or None, default=None
        Number of seeds. None: 1 for "quick", 3 for "grid".
    time_limit : float or None, default=None
        Seconds after which nothing new is tried; what is under way, and the fit from the best, is finished.
    device : str or None, default=None
        "cuda", "cuda:1", "cpu": fit the model with torch there.
    store : path or None, default=None
        SQLite file of finished fits of the grid, as for `fit_grid`: an interrupted fit goes on from there.
    random_state : int, RandomState or None, default=None
        Source of the seeds.
    verbose : int, default=0
        1 prints to stderr what is being done, a line per clustering, and the progress of a grid.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Clusters 0, 1, … of the samples; fewer than ``n_clusters`` where there are fewer distinct samples.
        Equal samples have equal labels. Cluster j is that in which part j is largest, as far as that can be.
    model_ : fitted estimator
        The factorisation, fitted from these clusters or the one whose codes they are clusters of.
    components_, embedding_ : ndarrays of shape (k, p) and (n, k)
        Its parts, and its codes of the samples.
    n_clusters_ : int
        Number of clusters that were sought: ``n_clusters``, or the number chosen.
    rows_ : list of dict
        What was tried: ``candidate``, ``seed``, ``modularity``, ``balance``, ``normalized_cut``, ``clusters``
        and ``seconds`` of each, and whether it was ``chosen``.
    sample_ : ndarray of shape (m,) or None
        The samples that were clustered, if X was in blocks; None: all of them.
    n_features_in_, feature_names_in_ : int and ndarray of shape (p,)
        Number of features p; their names, if X is a data frame with string names.

    See Also
    --------
    lognmf.tune : Chooses the weights of one model.
    lognmf.cluster : k-means on given codes.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.preprocessing import normalize
    >>> from lognmf import NMFClustering, metrics
    >>> X, y = load_digits(return_X_y=True)
    >>> clusterer = NMFClustering(10, random_state=0).fit(normalize(X[:600]))
    >>> bool(metrics.clustering_accuracy(y[:600], clusterer.labels_) > 0.8)
    True
    >>> clusterer.predict(normalize(X[600:])).shape, clusterer.components_.shape
    ((1197,), (10, 64))
    """

    top_features = FactorModel.top_features

    labels_: np.ndarray
    n_features_in_: int

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        model: Any = "LS-NMF",
        effort: Literal["quick", "grid"] = "quick",
        n_neighbors: int = 5,
        graph: Literal["knn", "exact", "approximate"] | sp.sparray | sp.spmatrix = "knn",
        n_init: int | None = None,
        time_limit: float | None = None,
        device: str | None = None,
        store: str | os.PathLike[str] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.model = model
        self.effort = effort
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.n_init = n_init
        self.time_limit = time_limit
        self.device = device
        self.store = store
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (n, p)
            Samples in rows, nonnegative unless the model takes signed data. In blocks of rows (`in_blocks`),
            20,000 random samples are clustered, and the others get the clusters of their neighbours there.
        y : ignored
            Present for scikit-learn.

        Returns
        -------
        self : object
            The fitted clusterer.

        Raises
        ------
        ValueError, TypeError
            If X or a parameter cannot be used; the message says what to do.
        """
        self.check_parameters()
        with printed(int(self.verbose)):
            if (source := several_blocks(X)) is not None:
                fit_sampled(self, source)
                return self
            self.fit_samples(read_samples(X, estimator=self))
        self.sample_ = None
        return self

    def fit_samples(self, samples: Samples, graphs: Graphs | None = None) -> Self:
        """The fit itself, on data that were read; ``graphs`` are those of the same samples in NumPy."""
        began = time.perf_counter()
        estimator = self._estimator()
        data = check_samples(self, samples, reset=True)
        if not isinstance(self.n_clusters, str):
            check_clusters(self.n_clusters, None, data.shape[0])
        estimator.check_parameters()
        samples = replace(samples, data=InMemory(place(data.X, self.device, None), None))
        known, there = on_cpu(data.X), samples.data.X
        searched = there if on_gpu(there) else known
        if graphs is None:
            graphs = Graphs(searched, graph=self._graph(estimator))
        if not isinstance(graphs.graph, str):
            graphs.given(graphs.graph)  # refused before any work

        # A graph in which everybody is everybody's neighbour tells nothing.
        n_neighbors = min(self.n_neighbors, max(1, (data.shape[0] - 1) // 2))
        count = EFFORTS[self.effort] if self.n_init is None else self.n_init
        seeds = generator(self.random_state).randint(2**31 - 1, size=count).tolist()
        k = self.n_clusters_ = self._number(graphs, n_neighbors, seeds[0])
        estimator.set_params(n_components=k)
        estimator.check_data(samples.data, graphs)
        candidates = Candidates(searched, k, graphs, n_neighbors, self.time_limit, began)
        for seed in seeds:
            candidates.add_families(seed)
        chosen = candidates.best
        robust = isinstance(self.model, str) and hasattr(estimator, "gamma")
        self.model_ = fit_from(estimator, samples, graphs, chosen, choose_gamma=robust)
        labels = cluster(self.model_.embedding_, k, random_state=chosen.seed)
        refined = candidates.add("codes of a fit from the best", chosen.seed, labels)
        chosen = refined if refined.refines(chosen) else chosen
        if self.effort == "grid":
            estimator.set_params(**({"gamma": "auto"} if robust else {}))
            chosen = self._try_grid(candidates, estimator, samples, seeds, chosen)

        self.labels_ = numbered_by_parts(chosen.labels, self.model_.embedding_)
        self.components_ = to_numpy(self.model_.components_)
        self.embedding_ = to_numpy(self.model_.embedding_)
        self.rows_ = [{**one.row(), "chosen": one is chosen} for one in candidates.found]
        first = distinct_rows(known)[0]
        self._known = known[first], self.labels_[first]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Assign samples to the clusters of their nearest neighbours among the training samples.

        The three nearest vote, each by the inverse of its distance; a sample that equals a training sample
        gets its label.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p)
            Samples in rows.

        Returns
        -------
        labels : ndarray of shape (m,)
            Clusters as in ``labels_``.

        Raises
        ------
        ValueError, TypeError
            If X cannot be used.
        """
        check_is_fitted(self)
        if (source := several_blocks(X)) is not None:
            return predict_blocks(self, source)
        new = check_samples(self, X, reset=False).X
        known, labels = self._known
        return vote(alike(new, known), known, labels)

    @property
    def spec(self) -> Spec:
        """What X may be: as the model says, but without missing entries."""
        return replace(self._estimator().spec, missing=False)

    def check_parameters(self) -> None:
        if not isinstance(self.n_clusters, str):
            check_integer("n_clusters", self.n_clusters, 1)
        elif self.n_clusters != AUTO:
            msg = f'n_clusters must be an integer >= 1 or "auto"; got {self.n_clusters!r}.'
            raise ValueError(msg)
        check_choice("effort", self.effort, EFFORTS)
        check_graph_parameters(self.graph, self.n_neighbors)
        if self.graph is None:
            msg = 'graph must not be None: clusters are judged on a graph. Use "knn", or give one.'
            raise ValueError(msg)
        if self.n_init is not None:
            check_integer("n_init", self.n_init, 1)
        if self.time_limit is not None:
            check_positive("time_limit", self.time_limit)
        check_random_state(self.random_state)
        check_nonnegative("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose)

    def _graph(self, estimator: Any) -> Any:
        """The graph of the samples: the clusterer's own, unless the model names or was given another one."""
        plain = isinstance(self.graph, str) and self.graph == "knn"
        of_model = getattr(estimator, "graph", None)
        return of_model if plain and of_model is not None else self.graph

    def _estimator(self) -> Any:
        """The model to be fitted."""
        estimator = check_model(self.model, None, None)
        if isinstance(self.model, str):
            estimator.set_params(**SETTINGS.get(self.model, {"max_iter": UPDATES}))
        return estimator

    def _number(self, graphs: Graphs, n_neighbors: int, seed: int) -> int:
        """The number of clusters: as given, or chosen."""
        if not isinstance(self.n_clusters, str):
            return int(self.n_clusters)
        ks = range(2, min(MOST_CLUSTERS, graphs.X.shape[0] - 1) + 1)
        if not ks:
            return 1
        with stage("choosing the number of clusters"):
            best, reason = most_modular(graphs.X, graphs.knn(n_neighbors), ks, seed)
        say(reason)
        return best

    def _try_grid(
        self, candidates: Candidates, estimator: Any, samples: Samples, seeds: list[int], chosen: Clustering
    ) -> Clustering:
        """The best of ``chosen`` and what `tune` finds from every start, as long as there is time."""
        init = "spectral" if "spectral" in estimator.spec.starts else estimator.init
        estimator = estimator.set_params(init=init)
        for seed in with_different_starts(seeds, init, candidates) if default_grid(estimator) else []:
            if candidates.time_is_up:
                break
            tuned = tune(
                samples.data.X,
                estimator.n_components,
                model=estimator,
                init=init,
                seeds=[seed],
                store=self.store,
                graph=candidates.graphs.knn(NEIGHBOURS),
            )
            one = candidates.add(f"codes of the grid: {tuned.setting}", seed, tuned.labels)
            # Without an iteration the model is the bare start, and its clusters are known.
            if tuned.model.n_iter_ and one.refines(chosen):
                chosen, self.model_ = one, tuned.model
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        spec = self.spec
        tags.input_tags.positive_only = not spec.signed
        tags.input_tags.sparse = spec.sparse
        return tags
