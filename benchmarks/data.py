"""Data sets with samples of unit norm in rows: the paper's eight, and small ones of scikit-learn."""

import functools

import numpy as np
from sklearn import datasets as small_sets
from sklearn.preprocessing import minmax_scale, normalize

from lognmf import datasets

READERS = {paper: name for name, paper in datasets.PAPER.items()}
"""Our names by the paper's."""

SMALL = {
    "digits": small_sets.load_digits,
    "iris": small_sets.load_iris,
    "wine": small_sets.load_wine,
    "cancer": small_sets.load_breast_cancer,
}
"""Sets that come with scikit-learn; features are scaled to [0, 1] before the samples."""


def _half(y, draw):
    """Samples of half of the classes."""
    classes = np.random.default_rng(draw).permutation(y.max() + 1)[: (y.max() + 1) // 2]
    return np.isin(y, classes)


def _uneven(y, draw):
    """Samples such that the largest class has some ten times the samples of the smallest."""
    rng = np.random.default_rng(draw)
    return rng.random(len(y)) < rng.permutation(np.geomspace(0.1, 1, y.max() + 1))[y]


PARTS = {f"half{draw}": functools.partial(_half, draw=draw) for draw in range(3)}
PARTS |= {f"uneven{draw}": functools.partial(_uneven, draw=draw) for draw in range(3)}
"""Parts of a data set, to see whether what holds for the whole is luck."""

ALL = [name + part for name in (*READERS, *SMALL) for part in ("", *(f":{part}" for part in PARTS))]


def load(name):
    """``X`` (n, p) float64 with unit-norm rows, ``y`` (n,); ``name:part`` loads a part."""
    name, _, part = name.partition(":")
    X, y = _whole(name)
    if part:
        keep = PARTS[part](y)
        X, y = X[keep], y[keep]
    return X, np.unique(y, return_inverse=True)[1]


def _whole(name):
    if name in SMALL:
        X, y = SMALL[name](return_X_y=True)
        return normalize(X if name == "digits" else minmax_scale(X)), y
    try:
        found = datasets.load(READERS[name])
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None
    return normalize(found.X), found.y
