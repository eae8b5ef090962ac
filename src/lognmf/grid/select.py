"""Choosing a setting without labels, from the rows of a grid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lognmf.parameters import check_choice

__all__ = ["CRITERIA", "LOOKED_AT", "Choice", "best_row", "select"]

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
    "normalized_cut",
    "modularity",
    "clusters",
    "balance",
    "accuracy",
    "nmi",
    "purity",
)
"""Columns that say how a fit went; all others of a row are its setting."""

CUT_SLACK = (1.05, 0.05)
"""How much worse than the best a cut may be, relatively and absolutely, to be as good as it."""


_ROUNDING = 1e-9
"""Means of equal numbers may differ by this."""


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


def select(rows: Sequence[Mapping[str, Any]], by: str = "normalized_cut") -> Choice:
    """The setting that is best without labels, in the mean over its seeds.

    Parameters
    ----------
    rows : sequence of mappings
        Rows of `fit_grid`, made with ``n_clusters`` or ``y``.
    by : {"normalized_cut", "balanced_cut", "balanced_modularity"}, default="normalized_cut"
        "normalized_cut": the clustering cuts least of the neighbour graph, where a cluster
        without samples counts as one that is cut in full. "balanced_cut": the most even
        cluster sizes among the settings whose cut is within 5 % + 0.05 of the least.
        "balanced_modularity": the largest modularity on the neighbour graph among the
        settings that cut no more and are no less balanced than the start, where the start
        itself is among them (``max_iter=0``); else the largest sum of modularity and balance.

    Returns
    -------
    Choice

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
    if not rows or any("normalized_cut" not in row for row in rows):
        msg = "select needs rows with a normalised cut: give fit_grid n_clusters (or y)."
        raise ValueError(msg)
    if by == "balanced_modularity" and any("modularity" not in row for row in rows):
        msg = f"by={by!r} needs rows with a modularity: fit the grid again, these are older."
        raise ValueError(msg)
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        setting = {name: value for name, value in row.items() if name not in RESULTS}
        groups.setdefault(_key(setting), []).append(row)
    most = max(row["clusters"] for row in rows)
    cuts = np.array([np.mean([_cut(row, most) for row in group]) for group in groups.values()])
    values = CRITERIA[by](cuts, list(groups.values()))
    order = np.argsort(values, kind="stable")
    settings = [{n: v for n, v in group[0].items() if n not in RESULTS} for group in groups.values()]
    scores = [(settings[i], float(values[i])) for i in order]
    return Choice(*scores[0], scores)


def best_row(rows: Sequence[Mapping[str, Any]], setting: Mapping[str, Any], by: str) -> int:
    """Which row of a setting is best: that of the largest modularity, or of the least cut.

    Parameters
    ----------
    rows : sequence of mappings
        As for `select`.
    setting : mapping
        One of the settings.
    by : str
        The criterion that the setting was chosen by.

    Returns
    -------
    int
        Its place in ``rows``.
    """
    chosen = _key(setting)
    own = [i for i, row in enumerate(rows) if _key({name: row[name] for name in setting}) == chosen]
    if by == "balanced_modularity":
        return max(own, key=lambda i: rows[i]["modularity"])
    return min(own, key=lambda i: rows[i]["normalized_cut"] - rows[i]["clusters"])


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps(setting, sort_keys=True, default=str)


def _cut(row: Mapping[str, Any], most: int) -> float:
    return row["normalized_cut"] + (most - row["clusters"])


def _least_cut(cuts: np.ndarray, groups: list[list[Mapping[str, Any]]]) -> np.ndarray:
    return cuts


def _most_balanced(cuts: np.ndarray, groups: list[list[Mapping[str, Any]]]) -> np.ndarray:
    """Imbalance where the cut is good enough; behind all of them, the cut itself."""
    imbalance = 1 - np.array([np.mean([row["balance"] for row in group]) for group in groups])
    good = cuts <= CUT_SLACK[0] * cuts.min() + CUT_SLACK[1]
    return np.where(good, imbalance, 1 + cuts)


def _most_modular(cuts: np.ndarray, groups: list[list[Mapping[str, Any]]]) -> np.ndarray:
    """What the modularity lacks to 1, for clusterings that are no worse than the start otherwise.

    Each score has its blind side, which another one sees. Codes that are smoothed along the graph
    blur clusters into one another: cut and modularity improve, the balance falls. Where classes differ
    in size, splitting a large one and merging small ones improves modularity and balance, but cuts
    more. So a fit has to be no worse than the start, which knows the graph alone, in all three.
    Without a start to compare with, balance counts as much as modularity; both are at most 1.
    """
    modularity, balance = (
        np.array([np.mean([row[name] for row in group]) for group in groups])
        for name in ("modularity", "balance")
    )
    start = np.array([all(row.get("n_iter") == 0 for row in group) for group in groups])
    if not start.any():
        return 2 - modularity - balance
    no_worse = (balance >= balance[start].min() - _ROUNDING) & (cuts <= cuts[start].max() + _ROUNDING)
    # Of equal clusterings a fitted model is better than a bare start.
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
"""Columns of the rows that a criterion weighs."""
