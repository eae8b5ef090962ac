"""The honest protocol's results: means over seeds, and paired tests against every other method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

__all__ = ["Paired", "Spread", "holm", "paired_tests", "spread"]


@dataclass(frozen=True)
class Spread:
    """A metric over seeds.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation (n − 1).
    seeds : int
        How many.
    """

    mean: float
    std: float
    seeds: int


def spread(rows: Sequence[Mapping[str, Any]], metric: str) -> Spread | None:
    """Mean and standard deviation of a metric; None without rows."""
    values = [row[metric] for row in rows]
    if not values:
        return None
    return Spread(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))


@dataclass(frozen=True)
class Paired:
    """A paired comparison of two methods.

    Parameters
    ----------
    ours, other : str
        The methods.
    pairs : int
        Data on which both were run.
    wins, losses : int
        Where ours was better, and worse.
    difference : float
        Mean of ours minus the other.
    p : float
        Of Wilcoxon's signed-rank test, two-sided.
    p_holm : float
        The same, corrected for all comparisons of ours (Holm).
    """

    ours: str
    other: str
    pairs: int
    wins: int
    losses: int
    difference: float
    p: float
    p_holm: float


def paired_tests(means: Mapping[str, Mapping[str, float]], ours: str, others: Sequence[str]) -> list[Paired]:
    """Compare a method with others on the data that both were run on.

    Parameters
    ----------
    means : mapping of str to mapping of str to float
        For every method its mean over the seeds, by the name of the data.
    ours : str
        The method.
    others : sequence of str
        Those it is compared with; those without data in common are left out.

    Returns
    -------
    list of Paired
        In the order of ``others``.

    Examples
    --------
    >>> means = {"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.7, "y": 0.8}}
    >>> test = paired_tests(means, "a", ["b"])[0]
    >>> test.wins, test.losses, test.pairs
    (1, 0, 2)
    """
    found = []
    for other in others:
        common = sorted(means.get(ours, {}).keys() & means.get(other, {}).keys())
        if common:
            found.append((other, np.array([means[ours][data] - means[other][data] for data in common])))
    values = [_wilcoxon(differences) for _, differences in found]
    return [
        Paired(
            ours,
            other,
            len(differences),
            int((differences > 0).sum()),
            int((differences < 0).sum()),
            float(differences.mean()),
            p,
            corrected,
        )
        for (other, differences), p, corrected in zip(found, values, holm(values), strict=True)
    ]


def _wilcoxon(differences: np.ndarray) -> float:
    """Two-sided p; 1 where nothing differs. Equal pairs are left out, as Wilcoxon has it."""
    differences = differences[np.abs(differences) > 1e-12]
    return 1.0 if differences.size == 0 else float(wilcoxon(differences).pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of p-values.

    Parameters
    ----------
    values : sequence of float
        One for each test.

    Returns
    -------
    list of float
        Corrected values in the same order, at most 1.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, so_far = [0.0] * len(values), 0.0
    for place, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        so_far = max(so_far, min(1.0, (len(values) - place) * values[i]))
        corrected[i] = so_far
    return corrected
