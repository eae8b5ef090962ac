"""The paper's two kinds of noise: entries removed at random, and Gaussian noise.

Both take samples in rows and return new data; their input is not changed. The paper removes
20, 40 and 60 % of the entries, and adds noise of standard deviation 0.005, 0.010 and 0.015 to samples
of unit norm.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.parameters import check_flag, check_nonnegative, check_sparse, unmasked

__all__ = ["gaussian", "remove"]


def remove(
    X: Any, share: float, rng: np.random.Generator | int, replacement: bool = False
) -> tuple[Any, np.ndarray]:
    """Set random entries to zero.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Samples. In a sparse matrix zeros are drawn like any other entry.
    share : float
        From 0 to 1: ``round(share · n · p)`` entries are drawn.
    rng : numpy.random.Generator or int
        Source of the random numbers, or a seed.
    replacement : bool, default=False
        Whether an entry may be drawn again. If so, about a share ``1 − exp(−share)`` of the entries
        is removed: 18, 33 and 45 % for 20, 40 and 60 %. This agrees with the paper's tables.

    Returns
    -------
    X_noisy : ndarray or csr_array of shape (n, p)
        X with zeros at the drawn entries, of the same dtype.
    mask : ndarray of bool of shape (n, p)
        True where the entry is known, False where it was removed: ``weights`` for
        `WeightedNMF.fit` and `LogSparseNMF.fit`.

    Raises
    ------
    ValueError, TypeError
        If ``share`` is not from 0 to 1, or X is not a matrix of finite numbers.

    See Also
    --------
    gaussian : The other kind of noise.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import noise
    >>> X_noisy, mask = noise.remove(np.ones((4, 5)), 0.2, rng=0)
    >>> int(X_noisy.sum()), int(mask.sum())
    (16, 16)
    """
    check_nonnegative("share", share)
    if share > 1:
        msg = f"share must be a number from 0 to 1; got {share}. For a percentage divide by 100."
        raise ValueError(msg)
    check_flag("replacement", replacement)
    generator = _generator(rng)
    X = _checked(X)
    n, p = X.shape
    draws = round(float(share) * n * p)
    if replacement:
        drawn = generator.integers(n * p, size=draws)
    else:
        drawn = generator.choice(n * p, size=draws, replace=False, shuffle=False)
    mask = np.ones((n, p), dtype=bool)
    mask.reshape(-1)[drawn] = False
    if not sp.issparse(X):
        return np.where(mask, X, X.dtype.type(0)), mask
    entries = sp.coo_array(X)
    kept = mask[entries.coords]
    places = tuple(axis[kept] for axis in entries.coords)
    return sp.csr_array((entries.data[kept], places), shape=(n, p)), mask


def gaussian(X: Any, std: float, rng: np.random.Generator | int) -> np.ndarray:
    """Add Gaussian noise, then shift all entries so that the smallest is 0.

    The noise is N(0, std²) for every entry of X as given. The paper's std (0.005, 0.010, 0.015) is
    meant for samples of unit norm: scale them first, for example by ``sklearn.preprocessing.normalize(X)``.

    Parameters
    ----------
    X : array of shape (n, p)
        Samples.
    std : float
        Standard deviation, at least 0.
    rng : numpy.random.Generator or int
        Source of the random numbers, or a seed.

    Returns
    -------
    ndarray of shape (n, p)
        Of the dtype of X if that is floating-point, else float64.

    Raises
    ------
    ValueError, TypeError
        If ``std`` is negative, or X is sparse or not a matrix of finite numbers.

    See Also
    --------
    remove : The other kind of noise.

    Examples
    --------
    >>> import numpy as np
    >>> from lognmf import noise
    >>> float(noise.gaussian(np.ones((4, 5)), 0.01, rng=0).min())
    0.0
    """
    check_nonnegative("std", std)
    generator = _generator(rng)
    if sp.issparse(X):
        msg = "gaussian takes no sparse X, as noise leaves no zero: use X.toarray() if that fits into memory."
        raise TypeError(msg)
    X = _checked(X)
    dtype = X.dtype if X.dtype.kind == "f" else np.float64
    noisy = X + generator.normal(0.0, float(std), size=X.shape)
    noisy -= noisy.min()
    with np.errstate(over="ignore"):  # refused below
        noisy = noisy.astype(dtype, copy=False)
    if not np.isfinite(noisy).all():
        msg = f"X with noise of std {std} is too large for {np.dtype(dtype)}: divide X and std by a constant."
        raise ValueError(msg)
    return noisy


def _generator(rng: Any) -> np.random.Generator:
    """The generator given, or one for the seed given."""
    if isinstance(rng, np.random.Generator):
        return rng
    if not isinstance(rng, Integral) or isinstance(rng, bool) or rng < 0:
        given = f"{rng!r} of type {type(rng).__name__}"
        msg = f"rng must be a numpy.random.Generator or an integer seed >= 0; got {given}."
        raise TypeError(msg)
    return np.random.default_rng(int(rng))


def _checked(X: Any) -> Any:
    """X as a NumPy array or sparse matrix of finite real numbers (n, p)."""
    X = X if sp.issparse(X) else np.asarray(unmasked(X))
    if X.ndim != 2 or 0 in X.shape:
        msg = f"X must be a matrix of samples and features, at least one of each; got shape {tuple(X.shape)}."
        raise ValueError(msg)
    if X.dtype.kind not in "buif":
        msg = f"X must hold real numbers; got dtype {X.dtype}."
        raise TypeError(msg)
    check_sparse("X", X)
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        msg = "X contains NaN or infinity: fill or drop such entries first."
        raise ValueError(msg)
    return X
