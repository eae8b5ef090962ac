"""How many components? Errors of held-out entries, and stability of the parts."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state as generator

from lognmf.choose.held_out import SHARE, Fitted, draw_entries, fits_of_model, held_out_fits, outliers
from lognmf.core.arrays import to_numpy
from lognmf.core.data import InMemory, divided
from lognmf.core.matrices import on_cpu
from lognmf.grid.plan import check_model
from lognmf.models import WeightedNMF
from lognmf.models.validation import check_samples, read_samples
from lognmf.parameters import check_choice, check_flag, check_integer, check_random_state
from lognmf.progress import printed, stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = list[dict[str, float]]
"""One row for every k, smallest first."""

MOST_SAMPLES, MOST_FEATURES = 1000, 1000
"""Of more samples so many are drawn at random; of more features those of largest sums of squares stay."""

NEGLIGIBLE, AS_GOOD = 0.05, 0.25
"""A smaller k is as good as the best if its error is larger by at most this share of what a part explains on
average, and by at most that share of the least error."""

EXACT = 1e-4
"""Errors below this share of the variance are those of an exact factorisation, not quite converged."""

NEARLY_EXACT = 1e-3
"""With smaller errors a curve that falls up to the largest k tells of structure in what is left, not of
parts: the k at which it turns is recommended."""

TURNS = 2.0
"""A curve turns where the error is less than a straight line on a logarithmic scale has it by this factor."""

AGREEMENT = 0.02
"""How far below the best stability a k still counts as stable."""


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
        every fold finds the same parts.
    by : str
        What the recommendation goes by.
    n_outliers : int
        Number of entries that were left out of all fits and errors because they are outliers.
    seconds : float
        Time from the data to the choice.
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
    model: Any = None,
    by: str = "held_out",
    n_folds: int = 5,
    robust: bool = True,
    random_state: Any = None,
    verbose: int = 0,
) -> ComponentChoice:
    """Recommend a number of components.

    Plain NMF with every k is fitted to the data with 5 % of the entries held out at random, ``n_folds`` times
    with other entries and another start. A part that is really there lowers the error of the held-out
    entries, and every fold finds it; a part that follows noise does neither. The fit of a k does not depend
    on what else is in ``ks``.

    Of more than 1,000 samples, 1,000 random ones are used, and of more than 1,000 features those with the
    largest sums of squares. The number of components is not the number of clusters: samples of one cluster
    may need several parts, and clusters may share parts. For clusters use ``NMFClustering("auto")``.

    Parameters
    ----------
    X : array-like, sparse matrix or torch tensor of shape (n, p)
        Samples in rows, nonnegative; NaN marks a missing entry. The work is done by NumPy, in float64.
    ks : iterable of int
        Numbers to try, from 1 to min(n, p); a range such as ``range(2, 21)`` is best.
    model : estimator or a name in `MODELS`, optional
        Judge this model, with its loss and weights, instead of plain NMF. It must take missing entries, as
        which entries are held out. Every fold and k is a fit of its own, which takes longer. Numbers
        are for the data divided by their root mean square.
    by : {"held_out", "stability"}, default="held_out"
        What the recommendation goes by. "held_out": the smallest k whose error of held-out entries is above
        the smallest error by at most one standard error of the difference, or by so little (a quarter of it,
        and 5 % of what a part explains on average) that it does not matter. "stability": the largest k on
        whose parts the folds agree as well as on any.
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
    >>> rng = np.random.default_rng(1)
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
    model = None if model is None else _check_model(model)
    data = _check_data(X)
    ks = check_ks(ks, min(data.shape))
    began = time.perf_counter()
    with printed(verbose):
        rng = np.random.default_rng(generator(random_state).randint(2**31))
        A, missing = _some(*_plain(data), rng, max(ks))
        _check_enough(A, missing, n_folds)
        with stage("looking for outlying entries"):
            strange = outliers(A, missing, rng) if robust else np.zeros(0, dtype=int)
        unknown = strange if missing is None else np.union1d(strange, np.flatnonzero(missing))
        held_out = draw_entries(A.shape, unknown, n_folds, rng)
        seed, fits = int(rng.integers(2**31)), []
        with stage("choosing the number of parts", len(ks), "numbers tried") as progress:
            made = (
                held_out_fits(A, held_out, unknown, ks, seed)
                if model is None
                else fits_of_model(model, A, held_out, unknown, ks, seed)
            )
            for fitted in made:
                fits.append(fitted)
                rest = sum(
                    k for k in ks if k not in [one.k for one in fits]
                )  # a fit of k parts costs about k
                progress.move(len(fits), share=1 - rest / sum(ks))
    rows = _evidence(sorted(fits, key=lambda fitted: fitted.k), _variance(A, unknown))
    best, reason = RECOMMENDATIONS[by](rows)
    return ComponentChoice(best, reason, rows, by, len(strange), time.perf_counter() - began)


def _evidence(fits: list[Fitted], variance: float) -> Rows:
    """The rows, from the fits of every k."""
    errors = np.array([fitted.held_out for fitted in fits]) / variance  # (ks, folds)
    above = errors - errors[np.argmin(errors.mean(axis=1))]
    root = np.sqrt(errors.shape[1])
    return [
        {
            "k": fitted.k,
            "held_out_error": float(errors[i].mean()),
            "held_out_se": float(errors[i].std(ddof=1) / root),
            "above_best": float(above[i].mean()),
            "above_best_se": float(above[i].std(ddof=1) / root),
            "training_error": float(fitted.known.mean() / variance),
            "stability": fitted.stability,
        }
        for i, fitted in enumerate(fits)
    ]


# Recommendations ---------------------------------------------------------------------------


def _by_held_out(rows: Rows) -> tuple[int, str]:
    """The smallest k whose error is not clearly above the smallest."""
    least = min(rows, key=lambda row: row["held_out_error"])
    explained = max(0.0, 1 - least["held_out_error"]) / least["k"]
    slack = min(NEGLIGIBLE * explained, AS_GOOD * least["held_out_error"])
    best = next(row for row in rows if row["above_best"] <= max(row["above_best_se"], slack))
    exact = next((row for row in rows if row["held_out_error"] <= EXACT), None)
    falls = least is rows[-1] and least["held_out_error"] < NEARLY_EXACT
    turn = _turn(rows) if falls else None
    best = min((row for row in (best, exact, turn) if row is not None), key=lambda row: row["k"])
    k, error = int(best["k"]), best["held_out_error"]
    said = f"{k} components leave {error:.3g} of the variance of held-out entries unexplained"
    if best is turn:
        said += "; the error falls further, but the curve turns here."
    elif error <= EXACT:
        said += ": the factorisation is exact."
    elif best is least:
        said += ", the least of all."
    else:
        said += f"; the least is {least['held_out_error']:.3g} with {least['k']}, not clearly better."
    return k, f"{said} {_folds_agree(best['stability'])}{_edge(k, rows)}"


def _turn(rows: Rows) -> dict[str, float] | None:
    """Where the logarithm of the error is farthest below a straight line over the numbers tried."""
    ks = np.array([row["k"] for row in rows], dtype=float)
    logs = np.log([max(row["held_out_error"], EXACT**2) for row in rows])
    line = logs[0] + (logs[-1] - logs[0]) * (ks - ks[0]) / (ks[-1] - ks[0])
    below = line - logs
    return rows[int(np.argmax(below))] if below.max() > np.log(TURNS) else None


def _by_stability(rows: Rows) -> tuple[int, str]:
    """The largest k whose parts are about as stable as any."""
    several = [row for row in rows if row["k"] > 1]  # a single part is always stable
    most = max(row["stability"] for row in several)
    best = max((row for row in several if row["stability"] >= most - AGREEMENT), key=lambda row: row["k"])
    k = int(best["k"])
    said = f"{k} is the largest number of parts on which the folds agree as well as on any other"
    return k, f"{said} (mean cosine {best['stability']:.3f}).{_edge(k, rows)}"


def _folds_agree(stability: float) -> str:
    """The stability in words."""
    if stability >= 1 - AGREEMENT:
        return "All folds find the same parts."
    return f"Parts of different folds have a mean cosine of {stability:.2f}."


def _edge(k: int, rows: Rows) -> str:
    """A warning where the recommendation is the largest k that was tried."""
    return " It is the largest number that was tried: try larger ones." if k == rows[-1]["k"] else ""


RECOMMENDATIONS = {"held_out": _by_held_out, "stability": _by_stability}
"""The recommended k and the reason from the rows, by what is gone by."""


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
            f"ks must not exceed {most}, the number of samples or, if that is smaller, of features; "
            f"got {max(ks)}: leave out larger ones."
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


def _check_model(model: Any) -> Any:
    """The estimator to be judged, which must take missing entries."""
    estimator = check_model(model, None, None)
    if not estimator.spec.takes_missing(estimator):
        msg = f"model must take missing entries, as WeightedNMF does; got {type(estimator).__name__}."
        raise ValueError(msg)
    estimator.check_parameters()
    return estimator


def _some(
    X: Any, missing: np.ndarray | None, rng: np.random.Generator, most: int
) -> tuple[Any, np.ndarray | None]:
    """At most so many samples and features as are needed for a choice, and at least ``most`` of each."""
    (n, p), squares = X.shape, np.asarray((X * X).sum(axis=0)).reshape(-1)
    rows, columns = np.arange(n), np.arange(p)
    if n > (count := max(MOST_SAMPLES, 2 * most)):
        rows = np.sort(rng.permutation(n)[:count])
    if p > (count := max(MOST_FEATURES, 2 * most)):
        columns = np.sort(np.argsort(-squares, kind="stable")[:count])
    if len(rows) < n or len(columns) < p:
        X = X[rows][:, columns]
        missing = None if missing is None else missing[rows][:, columns]
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
