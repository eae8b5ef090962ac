"""Data sets with samples of unit norm in rows.

The paper's eight, from the folder that LOGNMF_DATA names, and small ones of scikit-learn.
"""

import functools
import os
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from sklearn import datasets
from sklearn.preprocessing import minmax_scale, normalize


def _mat(path, data="fea", labels="gnd", rows=None):
    def read(home):
        content = loadmat(home / path)
        return content[data][:rows], content[labels].reshape(-1)[:rows]

    return read


def _semeion(home):
    table = np.loadtxt(home / "semeion/semeion.data")
    return table[:, :256], table[:, 256:].argmax(axis=1)


def _pendigits(home):
    table = np.concatenate(
        [np.loadtxt(home / f"pendigits/pendigits.{part}", delimiter=",") for part in ("tra", "tes")]
    )
    return table[:, :-1], table[:, -1]


READERS = {
    "Semeion": _semeion,
    "EYaleB": _mat("eyaleb/YaleB_32x32.mat"),
    "ORL": _mat("orl/ORL_32x32.mat"),
    "AR": _mat("ar/ar.mat", "data", "labels", rows=1300),
    "Jaffe": _mat("jaffe/jaffe_213n_676d_10c.mat", "X", "y"),
    "Yale": _mat("yale/Yale_32x32.mat"),
    "COIL20": _mat("coil20/COIL20.mat"),
    "Pendigits": _pendigits,
}


SMALL = {
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "cancer": datasets.load_breast_cancer,
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
    home = os.environ.get("LOGNMF_DATA")
    if not home:
        raise SystemExit("Set LOGNMF_DATA to the folder of the benchmark data sets.")
    X, y = READERS[name](Path(home))
    return normalize(np.asarray(X, dtype=np.float64)), np.unique(y, return_inverse=True)[1]
