"""How every setting of a grid did, in the mean over its seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from lognmf.grid.select import RESULTS, select

__all__ = ["standings"]

_MEANS = ("balance", "modularity")


def standings(rows: Sequence[Mapping[str, Any]], by: str = "normalized_cut") -> list[dict[str, Any]]:
    """The settings of a grid, best first, each with its score and the means of what was judged.

    Parameters
    ----------
    rows : sequence of mappings
        Rows of `fit_grid`, made with ``n_clusters`` or ``y``.
    by : str, default="normalized_cut"
        Criterion, as for `select`.

    Returns
    -------
    list of dict
        The parameters of a setting, its ``score``, and the means over its seeds of
        ``normalized_cut``, where a cluster without samples counts as cut in full, of
        ``balance`` and, where the rows have it, of ``modularity``.

    Examples
    --------
    >>> row = {"normalized_cut": 0.5, "clusters": 3, "balance": 1.0}
    >>> rows = [{"lam": lam, "seed": seed, **row} for lam in (0.1, 1.0) for seed in (0, 1)]
    >>> standings(rows)[0]
    {'lam': 0.1, 'score': 0.5, 'normalized_cut': 0.5, 'balance': 1.0}
    """
    means: dict[str, dict[str, float]] = {}
    for key, group in _groups(rows).items():
        means[key] = {name: fmean(row[name] for row in group) for name in _MEANS if name in group[0]}
    cuts = {_key(setting): cut for setting, cut in select(rows, "normalized_cut").scores}
    return [
        {**setting, "score": score, "normalized_cut": cuts[_key(setting)], **means[_key(setting)]}
        for setting, score in select(rows, by).scores
    ]


def _groups(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of every setting."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        setting = {name: value for name, value in row.items() if name not in RESULTS}
        groups.setdefault(_key(setting), []).append(row)
    return groups


def _key(setting: Mapping[str, Any]) -> str:
    return json.dumps(setting, sort_keys=True, default=str)
