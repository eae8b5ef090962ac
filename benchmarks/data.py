"""The paper's eight data sets by the names of its tables, samples of unit norm in rows."""

from sklearn.preprocessing import normalize

from lognmf import datasets

READERS = {paper: name for name, paper in datasets.PAPER.items()}
"""Our names by the paper's."""


def load(name):
    """``X`` (n, p) float64 with unit-norm rows, ``y`` (n,)."""
    try:
        found = datasets.load(READERS[name])
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None
    return normalize(found.X), found.y
