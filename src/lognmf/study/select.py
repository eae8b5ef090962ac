"""Choosing a setting without labels, from the rows of a grid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lognmf.parameters import check_choice

__all__ = ["CRITERIA", "LOOKED_AT", "Choice", "select"]

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
        "balanced_modularity": the largest sum of modularity on the neighbour graph and
        balance of the cluster sizes; the score is what is missing to their most, 2.

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
        groups.setdefault(json.dumps(setting, sort_keys=True, default=str), []).append(row)
    most = max(row["clusters"] for row in rows)
    cuts = np.array([np.mean([_cut(row, most) for row in group]) for group in groups.values()])
    values = CRITERIA[by](cuts, list(groups.values()))
    order = np.argsort(values, kind="stable")
    settings = [{n: v for n, v in group[0].items() if n not in RESULTS} for group in groups.values()]
    scores = [(settings[i], float(values[i])) for i in order]
    return Choice(*scores[0], scores)


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
    """What modularity and balance lack; both are at most 1 and count alike.

    The modularity asks whether neighbours stay together, every edge counting the same; a cut
    sums over clusters, so that a few tiny ones decide it. The balance keeps large clusters from
    swallowing others, to which the graph alone is nearly blind.
    """
    return np.array([np.mean([2 - row["modularity"] - row["balance"] for row in group]) for group in groups])


CRITERIA = {
    "normalized_cut": _least_cut,
    "balanced_cut": _most_balanced,
    "balanced_modularity": _most_modular,
}
"""Scores of settings by name, lower is better: ``(mean cuts, rows of each setting) -> values``."""

LOOKED_AT = {
    "normalized_cut": ("normalized_cut",),
    "balanced_cut": ("normalized_cut", "balance"),
    "balanced_modularity": ("modularity", "balance"),
}
"""Columns of the rows that a criterion weighs."""
