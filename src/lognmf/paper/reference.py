"""The 702 numbers of the paper's tables, in percent."""

from __future__ import annotations

import csv
from functools import lru_cache
from importlib.resources import files

__all__ = ["METRICS", "numbers", "published"]

METRICS = {"accuracy": "Accuracy", "nmi": "Normalised mutual information", "purity": "Purity"}
"""The paper's three metrics: columns of rows, and what they are called."""


@lru_cache(maxsize=1)
def numbers() -> dict[tuple[str, str, str, str, str], float]:
    """Percentages by (label of the table, data set, level, metric, method)."""
    text = files("lognmf.paper").joinpath("paper_numbers.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["dataset"], row["level"], row["metric"], row["method"]): float(row["percent"])
        for row in csv.DictReader(text.splitlines())
    }


def published(label: str, dataset: str, level: str, metric: str, method: str) -> float | None:
    """A number of the paper, or None for what it does not have."""
    return numbers().get((label, dataset, level, metric, method))
