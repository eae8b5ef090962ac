"""Ranking the settings of a grid without labels, from its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lognmf.parameters import check_choice

RESULTS = (
    "seed",
    "seconds",
    "objective",
    "n_iter",
    "stop_reason",
    "reconstruction_err",
    "sparseness_U",
    "sparseness_V",
    "n_outliers",
    "alpha_",
    "beta_",
    "gamma_",
    "normalized_cut",
    "modularity",
    "clusters",
    "balance",
    "accuracy",
    "nmi",
    "purity",
)
"""Columns that hold results of a fit; all others of a row are its setting."""

CUT_SLACK = (1.05, 0.05)
"""A cut within this factor of the best, plus this much, counts as equally good."""

_ROUNDING = 1e-9
"""Means of equal numbers may differ by this."""


GridRow: TypeAlias = Mapping[str, Any]
"""A row of `fit_grid`."""


@dataclass(frozen=True)
class Choice:
    """The chosen setting.

    Parameters
    ----------
    setting : dict
        Parameters by name.
    score : float
        Its mean score over the seeds.
    scores : list of (dict, float)
        Every setting with its mean score, best first.
    """

    setting: dict[str, Any]
    score: float
    scores: list[tuple[dict[str, Any], float]]


def select(result: Any, by: str = "normalized_cut") -> Choice:
    """Choose the best setting without labels, on average over its seeds.

    Parameters
    ----------
    result : GridResult or sequence of mappings
        A result of `fit_grid` with ``n_clusters`` or ``y``, or its rows.
    by : {"normalized_cut", "balanced_cut", "balanced_modularity"}, default="normalized_cut"
        "normalized_cut": the clustering with the least normalised cut of the neighbour graph, where a cluster
        without samples counts as fully cut. "balanced_cut": the most even cluster sizes among the settings
        whose cut is within 5 % + 0.05 of the least. "balanced_modularity": the largest modularity on the
        neighbour graph among the settings that cut no more and are no less balanced than the start, if the
        grid contains the start itself (``max_iter=0``); else the largest sum of modularity and balance.

    Returns
    -------
    Choice
        The setting, its score and the scores of all settings.

    Raises
    ------
    ValueError
        If ``by`` is another word, or the rows lack what it needs.

    See Also
    --------
    fit_grid : Fits the grid.

    Examples
    --------
    >>> rows = [
    ...     {"lam": lam, "seed": 0, "normalized_cut": cut, "clusters": 3, "balance": 1.0}
    ...     for lam, cut in ((0.1, 0.5), (1.0, 0.2))
    ... ]
    >>> select(rows).setting
    {'lam': 1.0}
    """
    check_choice("by", by, CRITERIA)
    groups = _by_setting(_rows(result, by))
    values = CRITERIA[by](_mean_cuts(groups), groups)
    scores = [(_setting(groups[i][0]), float(values[i])) for i in np.argsort(values, kind="stable")]
    return Choice(*scores[0], scores)


def standings(result: Any, by: str = "normalized_cut") -> list[dict[str, Any]]:
    """The settings of a grid, best first, each with its score and the means of the judged columns.

    The arguments are those of `select`. An entry holds the parameters of a setting, its ``score``, and the
    means over its seeds of ``normalized_cut``, where a cluster without samples counts as fully cut, of
    ``balance`` and, if the rows have it, of ``modularity``.

    Examples
    --------
    >>> row = {"normalized_cut": 0.5, "clusters": 3, "balance": 1.0}
    >>> rows = [{"lam": lam, "seed": seed, **row} for lam in (0.1, 1.0) for seed in (0, 1)]
    >>> standings(rows)[0]
    {'lam': 0.1, 'score': 0.5, 'normalized_cut': 0.5, 'balance': 1.0}
    """
    groups = _by_setting(_rows(result, by))
    columns = {"normalized_cut": _mean_cuts(groups)}
    columns |= {name: _means(groups, name) for name in ("balance", "modularity") if name in groups[0][0]}
    means = {
        _key(_setting(group[0])): {name: float(column[i]) for name, column in columns.items()}
        for i, group in enumerate(groups)
    }
    return [
        {**setting, "score": score, **means[_key(setting)]} for setting, score in select(result, by).scores
    ]


def best_row(rows: Sequence[GridRow], setting: Mapping[str, Any], by: str) -> int:
    """Index of the row of a setting with the largest modularity or the least cut, depending on ``by``."""
    chosen = _key(setting)
    own = [i for i, row in enumerate(rows) if _key({name: row[name] for name in setting}) == chosen]
    if by == "balanced_modularity":
        return max(own, key=lambda i: rows[i]["modularity"])
    return min(own, key=lambda i: rows[i]["normalized_cut"] - rows[i]["clusters"])


def _rows(result: Any, by: str) -> Sequence[GridRow]:
    """The rows of a result; refused without the columns that the criterion needs."""
    rows = getattr(result, "rows", result)
    if not rows or any("normalized_cut" not in row for row in rows):
        msg = "select needs rows with a normalised cut: give fit_grid n_clusters (or y)."
        raise ValueError(msg)
    if by == "balanced_modularity" and any("modularity" not in row for row in rows):
        msg = f"by={by!r} needs rows with a modularity: fit the grid again, these rows are older."
        raise ValueError(msg)
    return rows


def _setting(row: GridRow) -> dict[str, Any]:
    """The parameters in a row."""
    return {name: value for name, value in row.items() if name not in RESULTS}


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps(setting, sort_keys=True, default=str)


def _by_setting(rows: Sequence[GridRow]) -> list[list[GridRow]]:
    """The rows of every setting."""
    groups: dict[str, list[GridRow]] = {}
    for row in rows:
        groups.setdefault(_key(_setting(row)), []).append(row)
    return list(groups.values())


def _means(groups: list[list[GridRow]], name: str) -> np.ndarray:
    """Mean of a column over the seeds of every setting."""
    return np.array([np.mean([row[name] for row in group]) for group in groups])


def _mean_cuts(groups: list[list[GridRow]]) -> np.ndarray:
    """Mean normalised cuts; each empty cluster adds 1, the largest cut of a cluster."""
    most = max(row["clusters"] for group in groups for row in group)
    return np.array(
        [np.mean([row["normalized_cut"] + (most - row["clusters"]) for row in g]) for g in groups]
    )


def _least_cut(cuts: np.ndarray, groups: list[list[GridRow]]) -> np.ndarray:
    return cuts


def _most_balanced(cuts: np.ndarray, groups: list[list[GridRow]]) -> np.ndarray:
    """Imbalance where the cut is good enough; all others are ranked behind, by their cut."""
    imbalance = 1 - _means(groups, "balance")
    good = cuts <= CUT_SLACK[0] * cuts.min() + CUT_SLACK[1]
    return np.where(good, imbalance, 1 + cuts)


def _most_modular(cuts: np.ndarray, groups: list[list[GridRow]]) -> np.ndarray:
    """One less the modularity, for clusterings that are no worse than the start in cut and balance.

    Each score alone can be fooled. Codes smoothed along the graph merge clusters: cut and modularity
    improve, balance falls. Where classes differ in size, splitting a large one and merging small ones
    improves modularity and balance, but cuts more. So a fit must be no worse than the start, which uses the
    graph alone, in all three. Without a start in the grid, balance counts as much as modularity.
    """
    modularity, balance = _means(groups, "modularity"), _means(groups, "balance")
    start = np.array([all(row.get("n_iter") == 0 for row in group) for group in groups])
    if not start.any():
        return 2 - modularity - balance
    no_worse = (balance >= balance[start].min() - _ROUNDING) & (cuts <= cuts[start].max() + _ROUNDING)
    # Between equal clusterings a fitted model is preferred to the bare start.
    return np.where(no_worse, 1 - modularity, 2 - modularity) + _ROUNDING * start


CRITERIA = {
    "normalized_cut": _least_cut,
    "balanced_cut": _most_balanced,
    "balanced_modularity": _most_modular,
}
"""Scores of settings by name, lower is better: ``(mean cuts, rows of each setting) -> values``."""

LOOKED_AT = {
    "normalized_cut": ("normalized_cut",),
    "balanced_cut": ("normalized_cut", "balance"),
    "balanced_modularity": ("modularity", "normalized_cut", "balance"),
}
"""Columns that a criterion uses, by its name."""
