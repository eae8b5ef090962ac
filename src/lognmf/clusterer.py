"""Clusters without labels: the best of several families of clusterings, with a decomposition for it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from lognmf.blocks import RowBlocks, WorkerBlocks, as_source
from lognmf.blocks.rows import sample_size
from lognmf.clustering import cluster, numbered_by_parts, scores, spectral_clusters
from lognmf.clustering.number import (
    MOST_CLUSTERS,
    NumberOfClusters,
    distances,
    number_of_clusters,
    silhouette,
    silhouette_weight,
)
from lognmf.clustering.spectral import TINY_PIECE
from lognmf.core.arrays import Array, Matrix, is_torch, on_gpu, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.matrices import on_cpu, rows_of, stored_values
from lognmf.core.starts import krylov_svd
from lognmf.core.threads import one_blas_thread
from lognmf.graph import Graphs
from lognmf.graph.neighbours import distinct_rows, nearest
from lognmf.grid.plan import check_clusters, check_model, place
from lognmf.models.base import FactorModel, Spec
from lognmf.models.blocks import check_names, read_block, some_rows
from lognmf.models.outlying import usual_gamma
from lognmf.models.starts import near_clusters
from lognmf.models.validation import (
    Samples,
    check_features,
    check_graph_parameters,
    check_samples,
    read_samples,
)
from lognmf.models.weights import OUTLIERS
from lognmf.parameters import check_integer, check_nonnegative
from lognmf.parameters import check_random_state as check_seed
from lognmf.progress import printed, say, stage, warn

UPDATES = 10
"""Updates of a named model from the best clustering."""

_WEIGHTS = {"alpha": 0.01, "beta": 0.001, "lam": 1.0, "solver": "mu", "max_iter": UPDATES}
SETTINGS = {"LS-NMF": _WEIGHTS, "RLS-NMF": {**_WEIGHTS, "gamma": OUTLIERS.without}}
"""Parameters of a model given by name; others have ``max_iter`` alone. Its gamma follows from residuals."""

AUTO = "auto"
"""The number of clusters is to be chosen."""

STARTS = 4
"""Starts of k-means where a clustering is one of several; that of the neighbour graph has ten."""

MEASURED = 2000
"""Maximum number of samples whose distances are judged; a tree of links is built for as many."""

FEWEST_NEIGHBOURS = 2
"""Neighbours in the graph of groups of very few samples."""

DISAGREE = 0.25
"""Silhouettes of the chosen clustering and of the most compact one that differ by more are reported."""

VOTERS = 3
"""Neighbours that decide on the cluster of a new sample: with five, classes of few samples lose theirs."""

_ROUNDING = 1e-9
"""Equal scores may differ by this."""


class NMFClustering(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Clusters of the samples, chosen without labels, and a nonnegative factorisation that goes with them.

    The samples are clustered by spectral clustering of three neighbour graphs, by k-means in the space of
    the leading singular vectors, and by average linkage. The clustering with the largest sum of modularity
    on the neighbour graph and weighted silhouette is chosen; the silhouette counts much where clusters are
    compact and far apart, and next to nothing where they are not. If the graph has exactly ``n_clusters``
    connected components that are not tiny, only clusterings that cut no edge are compared. The model is then
    fitted from the chosen clustering. The clusters of its codes replace it if they have the larger score and
    are no worse in normalised cut and balance.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters, and of components of the model. "auto": 1 to 50, the number on which modularity
        beyond that of a cloud without clusters, silhouette and stability agree best.
    model : estimator, or a name in `MODELS`, default="LS-NMF"
        The factorisation. An estimator is fitted with its own parameters, but for ``n_components`` and
        ``random_state``; a name stands for ten updates with weights that suit samples of unit norm.
    n_neighbors : int, default=5
        Maximum number of neighbours per sample in the graph. There are fewer where clusters have fewer
        samples on average, but at least two.
    graph : {"knn", "exact", "approximate"} or sparse matrix of shape (n, n), default="knn"
        Neighbour graph of the samples, built from X or given (symmetric, nonnegative), also for the model if
        its own ``graph`` is "knn". With "knn" here the ``graph`` of a given model serves the clusters too.
        "knn" is "approximate" for large dense X, else "exact", as in `knn_graph`; ``verbose=1`` says which.
        With a given graph distances are not judged, but ``n_clusters="auto"`` looks at the samples alone.
    device : str, torch.device or None, default=None
        "cuda", "cuda:1", "cpu": fit the model with torch there.
    random_state : int, RandomState or None, default=None
        Source of the seeds.
    verbose : int, default=0
        1 prints to stderr what is being done, and a line per clustering.

    Attributes
    ----------
    labels_ : ndarray of shape (n,)
        Clusters 0, 1, … of the samples; fewer than ``n_clusters`` where there are fewer distinct samples.
        Equal samples have equal labels. Cluster j is that in which part j is largest, as far as that can be.
    model_ : fitted estimator
        The factorisation, fitted from the chosen clustering.
    components_, embedding_ : ndarrays of shape (k, p) and (n, k)
        Its parts, and its codes of the samples.
    n_clusters_ : int
        Number of clusters: ``n_clusters``, or the number chosen.
    number_ : NumberOfClusters or None
        With "auto" what speaks for every number: ``best``, ``reason``, ``others`` that are almost as good,
        and ``rows`` with ``k``, ``modularity``, ``silhouette``, ``stability`` and ``agreement``.
    rows_ : list of dict
        What was tried: ``candidate``, ``seed``, ``modularity``, ``silhouette``, ``balance``,
        ``normalized_cut``, ``clusters`` and ``seconds`` of each, and whether it was ``chosen``.
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
    sample_: np.ndarray | None
    number_: NumberOfClusters | None
    n_features_in_: int

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        model: Any = "LS-NMF",
        n_neighbors: int = 5,
        graph: Literal["knn", "exact", "approximate"] | sp.sparray | sp.spmatrix = "knn",
        device: Any = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.model = model
        self.n_neighbors = n_neighbors
        self.graph = graph
        self.device = device
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
        before = dict(vars(self))
        try:
            with printed(int(self.verbose)):
                if (source := _several_blocks(X)) is not None:
                    self._fit_sampled(source)
                else:
                    self.fit_samples(read_samples(X, estimator=self))
                    self.sample_ = None
        except BaseException:
            # A refused fit leaves the previous one as it was.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def fit_samples(self, samples: Samples, graphs: Graphs | None = None) -> Self:
        """The fit itself, on data that were read; ``graphs`` are those of the same samples in NumPy."""
        estimator = self._estimator()
        data = check_samples(self, samples, reset=True)
        n = data.shape[0]
        if not isinstance(self.n_clusters, str):
            check_clusters(self.n_clusters, None, n)
        estimator.check_parameters()
        samples = replace(samples, data=InMemory(place(data.X, self.device, None), None))
        known, there = on_cpu(data.X), samples.data.X
        searched = there if on_gpu(there) else known
        if graphs is None:
            graphs = Graphs(searched, graph=self._graph(estimator))
        if not isinstance(graphs.graph, str):
            graphs.given(graphs.graph)  # refused before any work

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self.number_, k = None, self.n_clusters
        if isinstance(k, str):
            with stage("choosing the number of clusters"):
                most = min(MOST_CLUSTERS, n // 2)
                self.number_ = number_of_clusters(searched, range(2, most + 1), np.random.RandomState(seed))
            say(self.number_.reason)
            k = self.number_.best
        self.n_clusters_ = k
        estimator.set_params(n_components=k)
        estimator.check_data(samples.data, graphs)
        candidates = Candidates(searched, k, graphs, _fitting_neighbours(self.n_neighbors, n, k))
        for name, family in FAMILIES.items():
            with stage(f"clustering: {name}"):
                candidates.add(name, seed, family(candidates, np.random.RandomState(seed)))
        chosen = candidates.best
        robust = isinstance(self.model, str) and "gamma" in estimator.spec.weights
        self.model_ = _fit_from(estimator, samples, graphs, chosen, choose_gamma=robust)
        labels = cluster(self.model_.embedding_, k, random_state=seed)
        refined = candidates.add("codes of a fit from the best", seed, labels)
        chosen = refined if refined.refines(chosen) else chosen
        candidates.report(chosen)
        self.labels_ = numbered_by_parts(chosen.labels, self.model_.embedding_)
        self.components_ = to_numpy(self.model_.components_)
        self.embedding_ = to_numpy(self.model_.embedding_)
        self.rows_ = [{**one.row(), "chosen": one is chosen} for one in candidates.found]
        first = distinct_rows(known)[0]
        self._known = known[first], self.labels_[first]
        return self

    def _fit_sampled(self, source: RowBlocks) -> None:
        """Cluster random samples, then give all samples the clusters of their neighbours among these."""
        if not isinstance(self._graph(self._estimator()), str):
            msg = (
                'graph must be a word such as "knn" where X is read in blocks, of which a part is clustered.'
            )
            raise ValueError(msg)
        count = sample_size(source.edges, source.shape[1], source.dtype)
        rng = check_random_state(self.random_state)
        index = np.sort(rng.choice(source.shape[0], count, replace=False))
        self.fit_samples(read_samples(some_rows(self, source, index), estimator=self))
        check_names(self, source, reset=True)
        labels, codes = [], []
        for rows in source.places:
            X = read_block(source, rows)
            labels.append(vote(alike(X, self._known[0]), *self._known))
            codes.append(to_numpy(self.model_.transform(X)))
        self.sample_, self.labels_ = index, np.concatenate(labels)
        self.embedding_ = np.concatenate(codes)

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
        if (source := _several_blocks(X)) is not None:
            self._check_blocks(source)
            return np.concatenate([self.predict(read_block(source, rows)) for rows in source.places])
        new = check_samples(self, X, reset=False).X
        known, labels = self._known
        return vote(alike(new, known), known, labels)

    def transform(self, X: Any) -> Array:
        """Compute the codes of samples, as ``model_.transform`` does.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p)
            Samples in rows.

        Returns
        -------
        V : array of shape (m, k)
            One row of codes per sample; those of the training samples may differ from ``embedding_``.

        Raises
        ------
        ValueError, TypeError
            If X cannot be used.
        """
        check_is_fitted(self)
        if (source := _several_blocks(X)) is not None:
            self._check_blocks(source)
            return self.model_.transform(source)
        samples = read_samples(X, estimator=self)
        check_samples(self, samples, reset=False)
        return self.model_.transform(samples)

    def _check_blocks(self, source: RowBlocks) -> None:
        """Refuse samples in blocks whose features are not those of the fit."""
        check_features(self, source, reset=False)
        check_names(self, source, reset=False)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

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
        check_graph_parameters(self.graph, self.n_neighbors)
        if self.graph is None:
            msg = 'graph must not be None: clusters are judged on a graph. Use "knn", or give one.'
            raise ValueError(msg)
        check_seed(self.random_state)
        check_nonnegative("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose)

    def _graph(self, estimator: Any) -> Any:
        """The graph of the samples: the clusterer's own, unless the model names or was given another one."""
        plain = isinstance(self.graph, str) and self.graph == "knn"
        return estimator.graph if plain and estimator.graph is not None else self.graph

    def _estimator(self) -> Any:
        """The model to be fitted."""
        estimator = check_model(self.model, None, None)
        if isinstance(self.model, str):
            estimator.set_params(**SETTINGS.get(self.model, {"max_iter": UPDATES}))
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        spec = self.spec
        tags.input_tags.positive_only = not spec.signed
        tags.input_tags.sparse = spec.sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# Candidates --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Clustering:
    """A clustering with its scores; an empty cluster counts as fully cut."""

    candidate: str
    seed: int
    labels: np.ndarray = field(repr=False)
    modularity: float
    silhouette: float | None  # None where distances are not judged
    balance: float
    normalized_cut: float
    clusters: int
    seconds: float

    def row(self) -> dict[str, Any]:
        """All but the labels."""
        return {name: value for name, value in vars(self).items() if name != "labels"}

    def refines(self, other: Clustering) -> bool:
        """Whether this has the larger modularity, and is no worse in silhouette, cut and balance.

        Each score alone can be fooled: codes smoothed along the graph merge clusters, which improves cut and
        modularity; splitting a large class and merging small ones improves modularity and balance.
        """
        weight = silhouette_weight([self.silhouette or 0.0, other.silhouette or 0.0])
        return (
            self.modularity > other.modularity
            and self.score(weight) > other.score(weight)
            and self.balance >= other.balance - _ROUNDING
            and self.normalized_cut <= other.normalized_cut + _ROUNDING
        )

    def score(self, weight: float) -> float:
        """Modularity and weighted silhouette."""
        return self.modularity + weight * (self.silhouette or 0.0)


class Candidates:
    """Clusterings of ``X`` (n, p), judged as they come in."""

    def __init__(self, X: Matrix, n_clusters: int, graphs: Graphs, n_neighbors: int) -> None:
        self.X, self.n_clusters, self.graphs, self.n_neighbors = X, n_clusters, graphs, n_neighbors
        self.found: list[Clustering] = []
        self._began = self._last = time.perf_counter()
        self._first, self._group = distinct_rows(X)
        n = X.shape[0]
        some = np.random.RandomState(0).permutation(n)[:MEASURED]
        self.measured = np.sort(some)
        # A graph that was given may say something else than the distances.
        self.D = distances(rows_of(X, self.measured)) if isinstance(graphs.graph, str) and n > 1 else None

    @property
    def best(self) -> Clustering:
        """The one with the largest modularity and weighted silhouette.

        Of a graph in just so many pieces, one that cuts none of them: modularity alone would split a large
        piece and merge small ones.
        """
        whole = [one for one in self.found if one.normalized_cut <= _ROUNDING]
        compared = whole if whole and self._pieces() == self.n_clusters else self.found
        weight = silhouette_weight([one.silhouette or 0.0 for one in compared])
        return max(compared, key=lambda one: one.score(weight))

    def _pieces(self) -> int:
        """Connected pieces of the graph, without tiny ones."""
        _, piece = connected_components(self.graphs.knn(self.n_neighbors), directed=False)
        return int((np.bincount(piece) >= TINY_PIECE * len(piece) / self.n_clusters).sum())

    def add(self, candidate: str, seed: int, labels: np.ndarray) -> Clustering:
        """Judge and keep a clustering; equal samples get the label of the first of them."""
        labels = np.unique(labels[self._first][self._group], return_inverse=True)[1]
        by_graph = scores.graph_scores(self.graphs.knn(self.n_neighbors), labels[:, None])
        clusters, balance = scores.cluster_sizes(labels[:, None], self.n_clusters)
        compact = None if self.D is None else silhouette(self.D, labels[self.measured])
        now = time.perf_counter()
        one = Clustering(
            candidate,
            seed,
            labels,
            float(by_graph["modularity"][0]),
            compact,
            float(balance[0]),
            float(by_graph["normalized_cut"][0] + self.n_clusters - clusters[0]),
            int(clusters[0]),
            now - self._last,
        )
        self._last = now
        self.found.append(one)
        said = "" if compact is None else f", silhouette {compact:.3f}"
        say(f"{now - self._began:.1f} s, modularity {one.modularity:.4f}{said}: {candidate}")
        return one

    def report(self, chosen: Clustering) -> None:
        """Warn where the judges disagree by much."""
        compact = max(self.found, key=lambda one: one.silhouette or 0.0)
        if (compact.silhouette or 0.0) - (chosen.silhouette or 0.0) > DISAGREE:
            warn(
                f"The neighbour graph and the distances disagree on {self.n_clusters} clusters: silhouette "
                f"{chosen.silhouette:.2f} for {chosen.candidate!r}, which was chosen, and "
                f"{compact.silhouette:.2f} for {compact.candidate!r}. See rows_, or try another number."
            )


def _fitting_neighbours(n_neighbors: int, n: int, k: int) -> int:
    """Neighbours in the graph of n samples in k clusters.

    Clusters of few samples on average have fewer neighbours, of the same cluster. A graph in which all are
    neighbours of all says nothing.
    """
    return min(n_neighbors, max(FEWEST_NEIGHBOURS, round(n / k) - 1), max(1, (n - 1) // 2))


def _spectral(c: Candidates, rng: np.random.RandomState) -> np.ndarray:
    """Spectral clustering of the neighbour graph."""
    return spectral_clusters(c.X, c.n_clusters, rng, c.graphs.knn(c.n_neighbors))


def _weighted(c: Candidates, rng: np.random.RandomState) -> np.ndarray:
    """The same with each edge weighted by the neighbours that its ends share."""
    edges = c.graphs.knn(c.n_neighbors) > 0
    W = sp.csr_array(c.graphs.shared(c.n_neighbors).multiply(edges))
    return spectral_clusters(c.X, c.n_clusters, rng, W, STARTS)


def _shared(c: Candidates, rng: np.random.RandomState) -> np.ndarray:
    """Spectral clustering of the graph in which all samples are joined that share neighbours."""
    return spectral_clusters(c.X, c.n_clusters, rng, c.graphs.shared(c.n_neighbors), STARTS)


def _linear(c: Candidates, rng: np.random.RandomState) -> np.ndarray:
    """k-means on the directions of the samples in the space of the leading singular vectors.

    Quicker than k-means on the samples, and for texts more reliable: few words are in two documents.
    """
    k = min(c.n_clusters, *c.X.shape)
    if is_torch(c.X):
        U, S, _ = krylov_svd(InMemory(c.X), k, rng, float(stored_values(c.X).max()))
    else:
        with one_blas_thread():  # its many thin products take twice as long on two threads
            U, S, _ = randomized_svd(c.X, k, n_iter=4, random_state=rng)
    return cluster(normalize(U * S), c.n_clusters, random_state=rng, n_init=STARTS)


def _linked(c: Candidates, rng: np.random.RandomState) -> np.ndarray:
    """Average linkage of samples by their distances, which finds groups of any size that are far apart.

    Of many samples some are linked, and the others join their neighbours.
    """
    if c.D is None:
        return _linear(c, rng)
    labels = fcluster(linkage(squareform(c.D, checks=False), "average"), c.n_clusters, "maxclust") - 1
    if len(labels) == c.X.shape[0]:
        return labels
    some = on_cpu(rows_of(c.X, c.measured))
    first = distinct_rows(some)[0]
    return vote(on_cpu(c.X), some[first], labels[first])


FAMILIES: dict[str, Callable[[Candidates, np.random.RandomState], np.ndarray]] = {
    "spectral": _spectral,
    "spectral, edges weighted by shared neighbours": _weighted,
    "spectral, shared neighbours": _shared,
    "k-means, singular vectors": _linear,
    "average linkage": _linked,
}
"""Clusterings by name."""


def _fit_from(
    estimator: Any, samples: Samples, graphs: Graphs, found: Clustering, *, choose_gamma: bool = False
) -> Any:
    """The model, fitted from a clustering: few updates keep the codes near it.

    With ``choose_gamma`` a second fit has the gamma that follows from the residuals of the first.
    """
    model = clone(estimator).set_params(random_state=found.seed)
    U, V = near_clusters(graphs.X, found.labels, model.n_components)
    given = {"V0": V}
    if "U0" in model.factor_shapes(*samples.shape) and not model.spec.signed:
        given["U0"] = U
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is not meant to converge
        model.fit_samples(samples, dict(given), graphs=graphs)
        if choose_gamma:
            model.set_params(gamma=usual_gamma(model, samples.data)).fit_samples(
                samples, given, graphs=graphs
            )
        return model


# New samples -------------------------------------------------------------------------------


def vote(new: Any, known: Any, labels: np.ndarray) -> np.ndarray:
    """Labels (m,) of new samples by those (n,) of the nearest known samples; an equal one decides alone."""
    voters, squared = nearest(new, known, min(VOTERS, known.shape[0]))
    equal = squared[:, :1] == 0
    weight = np.where(equal, squared == 0, 1 / np.sqrt(np.where(equal, 1, squared)))
    votes = np.zeros((len(voters), labels.max() + 1))
    np.add.at(votes, (np.arange(len(voters))[:, None], labels[voters]), weight)
    return votes.argmax(axis=1)


def alike(X: Any, known: Any) -> Any:
    """``X`` in the form of the training samples, so that equal samples are equal."""
    X = on_cpu(X)
    if sp.issparse(known):
        return sp.csr_array(X, dtype=known.dtype)
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=known.dtype)


def _several_blocks(X: Any) -> RowBlocks | None:
    """``X`` where it is in more than one block of rows; None where it is not."""
    if isinstance(X, WorkerBlocks):
        msg = "NMFClustering takes no blocks on workers, because it reads them here: use in_blocks."
        raise TypeError(msg)
    source = as_source(X)
    return source if source is not None and len(source.edges) > 2 else None
