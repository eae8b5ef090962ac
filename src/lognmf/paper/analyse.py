"""From a store to results: each number of the paper's tables next to ours, and the label-free results.

A *finding* is one number of a table: one metric of one method on one row, ours and the paper's.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from itertools import product
from statistics import fmean, stdev
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from lognmf.paper.methods import METHODS, OTHERS, OURS
from lognmf.paper.spec import Noise, best, best_of_each, paper_cell
from lognmf.paper.tables import Entry, PaperTable, Study

METRICS = {"accuracy": "Accuracy", "nmi": "Normalised mutual information", "purity": "Purity"}
"""The paper's three metrics: columns of rows, and their titles."""

CLOSE = 3.0
"""A number counts as reached if it is at most so many points below the paper's."""


@lru_cache(maxsize=1)
def numbers() -> dict[tuple[str, str, str, str, str], float]:
    """The 702 percentages of the paper by (label of the table, data set, level, metric, method)."""
    text = files("lognmf.paper").joinpath("paper_numbers.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["dataset"], row["level"], row["metric"], row["method"]): float(row["percent"])
        for row in csv.DictReader(text.splitlines())
    }


def published(label: str, dataset: str, level: str, metric: str, method: str) -> float | None:
    """A number of the paper, or None where it has none."""
    return numbers().get((label, dataset, level, metric, method))


# The paper's protocol ----------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """One number of a table: ours next to the paper's, in percent."""

    table: str
    entry: Entry
    noise: Noise  # differs from the entry's where entries were drawn without replacement
    metric: str
    method: str
    ours: float | None  # at the setting of highest accuracy; None if it is missing
    highest: float | None  # of the whole grid, in this metric alone
    paper: float | None  # for the paper's own draw
    setting: Mapping[str, Any]  # the weights of ``ours``
    settings: int  # how many were tried

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


def findings(table: PaperTable, study: Study) -> list[Finding]:
    """All numbers of a table, and of its removals without replacement."""
    results = []
    draws = [(entry, noise) for entry in table.inside(study.data) for noise in entry.noises]
    for (entry, noise), method in product(draws, METHODS):
        source = paper_cell(study.data[entry.dataset], noise, method, study.preset)
        rows, settings = study.store.rows(source), len(source.settings())
        row = best(rows) if len(rows) == settings else None
        for metric in METRICS:
            paper = published(table.label, entry.dataset, entry.level, metric, method)
            finding = Finding(
                table.name,
                entry,
                noise,
                metric,
                method,
                None if row is None else 100 * row[metric],
                None if row is None else 100 * (best_of_each(rows, metric) or 0.0),
                paper if noise == entry.noise else None,
                {} if row is None else {name: row[name] for name, _ in source.grid},
                settings,
            )
            results.append(finding)
    return results


def counted(finding: Finding) -> bool:
    """Whether a number counts in the summary: not those of AR, and not the 60 % removals."""
    heavy = finding.noise.kind == "removal" and finding.noise.level > 0.5
    return finding.entry.dataset != "AR" and not heavy


def reached(results: Iterable[Finding], methods: Sequence[str], *, highest: bool = False) -> tuple[int, int]:
    """How many numbers of methods reach the paper's minus `CLOSE` points, and of how many.

    With ``highest``, each metric may have a setting of its own.
    """
    pairs = [(f.highest if highest else f.ours, f.paper) for f in results if f.method in methods]
    differences = [ours - paper for ours, paper in pairs if ours is not None and paper is not None]
    return sum(difference >= -CLOSE for difference in differences), len(differences)


# The label-free protocol -------------------------------------------------------------------


@dataclass(frozen=True)
class LabelFree:
    """A method's label-free result on one row of a table, in percent."""

    table: str
    entry: Entry
    name: str  # in CONTESTANTS
    scores: Mapping[str, tuple[float, float]]  # mean and standard deviation (n − 1) over the seeds, by metric
    seeds: int
    setting: Mapping[str, Any]  # chosen without labels


def label_free_results(table: PaperTable, study: Study) -> list[LabelFree]:
    """The label-free results of a table, as far as all seeds are there."""
    results = []
    for entry, name, cell in table.then(study):
        rows = study.store.rows(cell)
        if len(rows) == len(cell.seeds):
            percent = {metric: [100 * row[metric] for row in rows] for metric in METRICS}
            scores = {m: (fmean(v), stdev(v) if len(v) > 1 else 0.0) for m, v in percent.items()}
            setting = {weight: values[0] for weight, values in cell.grid}
            results.append(LabelFree(table.name, entry, name, scores, len(rows), setting))
    return results


@dataclass(frozen=True)
class Paired:
    """A comparison of two methods, paired by data set and noise."""

    ours: str
    other: str
    pairs: int
    wins: int
    losses: int
    difference: float  # mean of ours minus the other
    p: float  # of Wilcoxon's signed-rank test, two-sided
    p_holm: float  # corrected for all comparisons of ours


FEWEST_SETS = 6
"""Fewest data sets for paired tests: with n pairs the two-sided p is at least 2 / 2ⁿ."""


def testable(results: Sequence[LabelFree]) -> bool:
    """Whether there are enough data sets for a test to find a difference."""
    return len({result.entry.dataset for result in results}) >= FEWEST_SETS


def all_tests(results: Sequence[LabelFree]) -> list[Paired]:
    """LS-NMF and RLS-NMF against every other method, by their mean accuracy."""
    means: dict[str, dict[str, float]] = {}
    for result in results:
        pair = f"{result.entry.dataset} {result.entry.level}"
        means.setdefault(result.name, {})[pair] = result.scores["accuracy"][0]
    return [test for ours in OURS for test in paired_tests(means, ours, OTHERS)]


def paired_tests(means: Mapping[str, Mapping[str, float]], ours: str, others: Sequence[str]) -> list[Paired]:
    """Compare a method with others on the data they have in common; ``means`` by method and data.

    >>> means = {"a": {"x": 0.9, "y": 0.8}, "b": {"x": 0.7, "y": 0.8}}
    >>> test = paired_tests(means, "a", ["b"])[0]
    >>> test.wins, test.losses, test.pairs
    (1, 0, 2)
    """
    differences = {}
    for other in others:
        common = sorted(means.get(ours, {}).keys() & means.get(other, {}).keys())
        if common:
            differences[other] = np.array([means[ours][data] - means[other][data] for data in common])
    values = [_wilcoxon(difference) for difference in differences.values()]
    return [
        Paired(ours, other, len(d), int((d > 0).sum()), int((d < 0).sum()), float(d.mean()), p, corrected)
        for (other, d), p, corrected in zip(differences.items(), values, holm(values), strict=True)
    ]


def _wilcoxon(differences: np.ndarray) -> float:
    """Two-sided p; 1 where nothing differs. Equal pairs are left out, as in Wilcoxon's paper."""
    differences = differences[np.abs(differences) > 1e-12]
    return 1.0 if differences.size == 0 else float(wilcoxon(differences).pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction of p-values, in the same order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(values), 0.0
    for place, i in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        largest = max(largest, min(1.0, (len(values) - place) * values[i]))
        corrected[i] = largest
    return corrected
