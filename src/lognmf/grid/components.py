"""How many components? Errors of held-out entries, stability of the parts, gaps of the neighbour graph."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state as generator

from lognmf.core.arrays import to_numpy
from lognmf.core.data import InMemory, divided
from lognmf.core.matrices import on_cpu
from lognmf.graph import Graphs
from lognmf.grid.graph_evidence import graph_evidence
from lognmf.grid.held_out import FIRST_ROUNDS, SHARE, Fitted, draw_entries, held_out_path, outliers
from lognmf.grid.recommendations import RECOMMENDATIONS, Rows
from lognmf.models import WeightedNMF
from lognmf.models.starts import NEIGHBOURS
from lognmf.models.validation import check_samples, read_samples
from lognmf.parameters import check_choice, check_flag, check_integer, check_random_state
from lognmf.progress import printed, stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class ComponentChoice:
    """The recommended number of components, and what speaks for it.

    Parameters
    ----------
    best : int
        The recommended number.
    reason : str
        Why, in words.
    rows : list of dict
        One row for every ``k``, smallest first. ``held_out_error``: mean squared error of the held-out
        entries divided by the variance of X (1 is no better than the mean of X), mean over the folds, with
        ``held_out_se``, its standard error. ``above_best`` and ``above_best_se``: the same of the difference
        to the smallest error, fold by fold. ``training_error``: as ``held_out_error``, of the entries that
        were fitted. ``stability``: mean cosine of the parts of two folds, matched one to one; 1 if
        every fold finds the same parts. ``eigengap``: the k-th eigenvalue of the random walk on the graph of
        5 neighbours less the next one; large where the graph falls into k clusters. ``modularity``: that of
        a spectral clustering of the graph into k clusters. A row has only what was computed.
    by : str
        What the recommendation goes by.
    n_outliers : int
        Number of entries that were left out of all fits and errors because they are outliers.
    seconds : float
        Time from the data to the choice, graph included.
    """

    best: int
    reason: str
    rows: Rows = field(repr=False)
    by: str
    n_outliers: int = 0
    seconds: float = field(default=0.0, repr=False)

    def plot(self) -> Figure:
        """The evidence as a picture: `lognmf.plots.components`."""
        from lognmf.plots import components

        return components(self.rows, self.best, self.by)

    def to_pandas(self) -> Any:
        """The rows as a pandas data frame."""
        import pandas

        return pandas.DataFrame(self.rows)


def choose_components(
    X: Any,
    ks: Iterable[int],
    *,
    by: str = "held_out",
    n_folds: int = 5,
    robust: bool = True,
    random_state: Any = None,
    verbose: int = 0,
) -> ComponentChoice:
    """Recommend a number of components.

    Plain NMF with every k is fitted to the data with 5 % of the entries held out at random, ``n_folds`` times
    with other entries and another start. The fits run from the largest k to the smallest: each begins where
    the one before ended, less the part that is missed least. A part that is really there lowers the error of
    the held-out entries, and every fold finds it; a part that follows noise does neither.

    The number of components is not the number of clusters: samples of one cluster may need several parts, and
    clusters may share parts. For clusters use ``by="modularity"``, and treat it as a guess: it finds 10 for
    the digits and for the ten persons of JAFFE, 9 for Semeion (10), 17 for COIL20 (20), but 18 for ORL (40),
    whose faces form fewer groups in the neighbour graph than there are persons, and 18 for the BBC news (5).
    It finds clusters also in noise.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows, nonnegative; NaN marks a missing entry. The work is done by NumPy, in float64.
    ks : iterable of int
        Numbers to try, from 1 to min(n, p), for clusters to n; a range such as ``range(2, 21)`` is best.
    by : {"held_out", "stability", "modularity", "eigengap"}, default="held_out"
        What the recommendation goes by. "held_out": the smallest k whose error of held-out entries is not
        clearly above the smallest. "stability": the largest k on whose parts the folds agree as well as on
        any. "modularity": the smallest k whose spectral clustering of the graph of 5 neighbours is about as
        modular as any; but where clusters are compact and far apart (mean silhouette of at least 0.5), the k
        with the largest silhouette. "eigengap": the k after which the eigenvalues of that graph drop most,
        which was right less often. The last two are about clusters, and fit no factorisation.
    n_folds : int, default=5
        Number of sets of held-out entries, from 2 to 20.
    robust : bool, default=True
        Whether single entries far off any factorisation (six standard deviations) are left out of fits
        and errors. None are looked for in sparse X, or if more than half of X is zero.
    random_state : int, RandomState or None, default=None
        Seed of the held-out entries and the starts.
    verbose : int, default=0
        1 prints to stderr what is being done, and how far it is, with the time left.

    Returns
    -------
    ComponentChoice
        ``best``, ``reason``, ``rows`` and ``plot()``.

    Raises
    ------
    ValueError, TypeError
        If X or an argument cannot be used.

    See Also
    --------
    consensus_components : Parts that many restarts agree on.
    lognmf.plots.components : The picture of the evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import choose_components
    >>> rng = np.random.default_rng(0)
    >>> V, U = (rng.random((size, 3)) * (rng.random((size, 3)) < 0.5) for size in (60, 30))
    >>> X = V @ U.T + 0.05 * rng.random((60, 30))
    >>> choose_components(X, range(1, 7), random_state=0).best
    3
    """
    check_choice("by", by, RECOMMENDATIONS)
    check_integer("n_folds", n_folds, 2)
    if n_folds * SHARE > 1:
        most = round(1 / SHARE)
        msg = f"n_folds must be from 2 to {most}, since every fold holds out {SHARE:.0%}; got {n_folds}."
        raise ValueError(msg)
    check_flag("robust", robust)
    check_random_state(random_state)
    data = _check_data(X)
    ks = check_ks(ks, data.shape[0] if by in ("modularity", "eigengap") else min(data.shape))
    with printed(verbose):
        return _chosen(data, ks, by, n_folds, robust, random_state)


def _chosen(
    data: InMemory,
    ks: list[int],
    by: str,
    n_folds: int,
    robust: bool,
    random_state: Any,
) -> ComponentChoice:
    """The choice among ``ks``, all of which are possible."""
    began = time.perf_counter()
    X, missing = _plain(data)
    W = Graphs(X).knn(NEIGHBOURS)
    with stage("clustering the neighbour graph"):
        judged = X if by == "modularity" else None
        by_graph = graph_evidence(W, ks, random_state=random_state, X=judged)
    columns: dict[str, Any] = {"k": ks, **by_graph}
    n_outliers = 0
    if by in ("held_out", "stability"):
        _check_enough(X, missing, n_folds)
        rng = np.random.default_rng(generator(random_state).randint(2**31))
        with stage("looking for outlying entries"):
            strange = outliers(X, missing, max(ks), rng) if robust else np.zeros(0, dtype=int)
        unknown = strange if missing is None else np.union1d(strange, np.flatnonzero(missing))
        held_out = draw_entries(X.shape, unknown, n_folds, rng)
        columns |= _evidence(_path(X, held_out, unknown, ks, rng), _variance(X, unknown))
        n_outliers = len(strange)
    rows = _rows(columns)
    best, reason = RECOMMENDATIONS[by](rows)
    return ComponentChoice(best, reason, rows, by, n_outliers, time.perf_counter() - began)


def _path(X: Any, held_out: np.ndarray, unknown: np.ndarray, ks: list[int], rng: Any) -> list[Fitted]:
    """The fits of every k, smallest first; they are made from the largest on."""
    fits = []
    with stage("choosing the number of parts", len(ks), "numbers tried") as path:
        for fitted in held_out_path(X, held_out, unknown, ks, rng):
            fits.append(fitted)
            # A fit of k parts costs about k, and the first one has several rounds.
            rest = sum(k for k in ks if k < fitted.k)
            path.move(len(fits), share=1 - rest / (sum(ks) + FIRST_ROUNDS * ks[-1]))
    return fits[::-1]


def most_modular(X: Any, W: sp.csr_array, ks: Sequence[int], random_state: Any) -> tuple[int, str]:
    """The number of clusters that ``by="modularity"`` recommends for samples with this graph, and why."""
    columns = {"k": ks, **graph_evidence(W, ks, random_state=random_state, X=X)}
    return RECOMMENDATIONS["modularity"](_rows(columns))


def _rows(columns: Mapping[str, Iterable[Any]]) -> Rows:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


# Arguments and data ------------------------------------------------------------------------


def check_ks(ks: Any, most: int) -> list[int]:
    """Numbers of components to try, smallest first, each from 1 to ``most``."""
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        example = f"range(2, {min(most, 20) + 1})"
        msg = f"ks must be several integers from 1 to {most}, such as {example}; got {ks!r}."
        raise TypeError(msg)
    ks = list(ks)
    for k in ks:
        check_integer("each of ks", k, 1)
    if len(set(ks)) < 2:
        msg = f"ks must hold at least two different numbers, or there is nothing to choose; got {ks}."
        raise ValueError(msg)
    if max(ks) > most:
        msg = (
            f"ks must not exceed {most}, the number of samples or, for components, of features if that is "
            f"smaller; got {max(ks)}: leave out larger ones."
        )
        raise ValueError(msg)
    return sorted({int(k) for k in ks})


def _check_data(X: Any) -> InMemory:
    """The samples, nonnegative and finite but for missing entries."""
    samples = read_samples(X)
    if samples.smallest < 0:
        msg = (
            "choose_components needs nonnegative data; the smallest entry of X is "
            f"{samples.smallest:.6g}: shift or clip X first."
        )
        raise ValueError(msg)
    return check_samples(WeightedNMF(), samples, reset=True)


def _plain(data: InMemory) -> tuple[Any, np.ndarray | None]:
    """X in NumPy, float64, of root mean square 1; and which entries are missing, None if none is."""
    X = on_cpu(data.X).astype(np.float64)
    missing = None if data.M is None else to_numpy(data.M) == 0
    largest = X.max()
    if not largest:
        msg = "X is zero everywhere: it needs no component."
        raise ValueError(msg)
    X = divided(X, largest)  # its squares neither vanish nor overflow
    known = X.shape[0] * X.shape[1] - (0 if missing is None else int(missing.sum()))
    X /= np.sqrt(np.sum((X.data if sp.issparse(X) else X) ** 2) / known)
    return X, missing


def _check_enough(X: Any, missing: np.ndarray | None, n_folds: int) -> None:
    """Refuse data with too few known entries for the folds."""
    known = X.shape[0] * X.shape[1] - (0 if missing is None else int(missing.sum()))
    if known * SHARE < 1:
        msg = f"X has {known} known entries; {n_folds} folds of {SHARE:.0%} need at least {round(1 / SHARE)}."
        raise ValueError(msg)


def _variance(X: Any, unknown: np.ndarray) -> float:
    """Variance of the known entries; 1 if they are all equal."""
    values = X.data if sp.issparse(X) else np.delete(X.reshape(-1), unknown)
    count = X.shape[0] * X.shape[1] - len(unknown)
    return float(np.sum(values**2) / count - (np.sum(values) / count) ** 2) or 1.0


# Evidence ---------------------------------------------------------------------


def _evidence(fits: list[Fitted], variance: float) -> dict[str, Any]:
    """Columns of the rows, from the fits of every k."""
    held_out = np.array([fitted.held_out for fitted in fits]) / variance  # (ks, folds)
    above = held_out - held_out[np.argmin(held_out.mean(axis=1))]
    root = np.sqrt(held_out.shape[1])
    return {
        "held_out_error": held_out.mean(axis=1).tolist(),
        "held_out_se": (held_out.std(axis=1, ddof=1) / root).tolist(),
        "above_best": above.mean(axis=1).tolist(),
        "above_best_se": (above.std(axis=1, ddof=1) / root).tolist(),
        "training_error": [float(fitted.known.mean() / variance) for fitted in fits],
        "stability": [fitted.stability for fitted in fits],
    }
