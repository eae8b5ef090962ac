"""The paper's norms and shrinkages as functions of a matrix, one sample per row.

Each wraps the term that the solvers use (`lognmf.core.terms`), and checks its arguments.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, is_torch, like, namespace, total
from lognmf.core.terms import L21, L2Log, Log, RowNorm
from lognmf.core.terms.robust import kept_share
from lognmf.parameters import check_layout, check_nonnegative


def log_norm(M: Any) -> float:
    """Log-norm ``Σ log(1 + |m_ij|)``, which the paper uses in place of the number of nonzeros.

    Parameters
    ----------
    M : array-like of any shape, or torch tensor

    Returns
    -------
    float

    See Also
    --------
    l2_log_norm : The norm of rows.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(log_norm([[0.0, np.e - 1]]), 1.0))
    True
    """
    M = _array(M, "M")
    entries = abs(namespace(M).reshape(M, (-1, 1, 1)))
    return float(Log(like([1.0], entries)).value(entries)[0])


def l2_log_norm(M: Any) -> float:
    """ℓ2,log norm ``Σ_i log(1 + ‖m_i‖)`` over the rows of ``M`` (``eq_l2log``).

    Parameters
    ----------
    M : array-like of shape (n, p), or torch tensor

    Returns
    -------
    float

    See Also
    --------
    shrink_l2_log : Its shrinkage.

    Examples
    --------
    >>> round(l2_log_norm([[3.0, 4.0], [0.0, 0.0]]), 3)
    1.792
    """
    return _norm(M, L2Log())


def l21_norm(M: Any) -> float:
    """ℓ2,1 norm ``Σ_i ‖m_i‖`` over the rows of ``M``.

    Parameters
    ----------
    M : array-like of shape (n, p), or torch tensor

    Returns
    -------
    float

    See Also
    --------
    shrink_l21 : Its shrinkage.

    Examples
    --------
    >>> l21_norm([[3.0, 4.0], [0.0, 0.0]])
    5.0
    """
    return _norm(M, L21())


def shrink_l2_log(Y: Any, tau: float) -> Array:
    """ℓ2,log shrinkage: ``argmin_W ‖Y − W‖²_F / 2 + tau ‖W‖_{2,log}`` (``eq_soft_thres``).

    Each row of the result is a multiple in [0, 1] of the row of ``Y``.

    Parameters
    ----------
    Y : array-like of shape (n, p), or torch tensor
    tau : float
        Nonnegative; larger values set more rows to zero.

    Returns
    -------
    array of shape (n, p)
        Of the library of ``Y``.

    See Also
    --------
    l2_log_norm : The norm.

    Examples
    --------
    >>> shrink_l2_log([[3.0, 4.0], [0.1, 0.0]], tau=1.0).round(3)
    array([[2.897, 3.863],
           [0.   , 0.   ]])
    """
    return _shrink(Y, tau, L2Log())


def shrink_l21(Y: Any, tau: float) -> Array:
    """ℓ2,1 shrinkage: ``argmin_W ‖Y − W‖²_F / 2 + tau ‖W‖_{2,1}``, row by row.

    Parameters
    ----------
    Y : array-like of shape (n, p), or torch tensor
    tau : float
        Nonnegative; rows of norm at most ``tau`` become zero.

    Returns
    -------
    array of shape (n, p)
        Of the library of ``Y``.

    See Also
    --------
    l21_norm : The norm.

    Examples
    --------
    >>> shrink_l21([[3.0, 4.0], [0.1, 0.0]], tau=1.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """
    return _shrink(Y, tau, L21())


def _array(M: Any, name: str, ndim: int | None = None) -> Array:
    """``M`` as a dense array of finite floating-point numbers."""
    if sp.issparse(M):
        msg = f"{name} must be dense; got a sparse matrix. Use {name}.toarray()."
        raise TypeError(msg)
    check_layout(name, M)
    if not is_torch(M):
        M = np.asarray(M)
    xp = namespace(M)
    if xp.isdtype(M.dtype, "complex floating"):
        msg = f"{name} must hold real numbers; got {M.dtype}."
        raise ValueError(msg)
    if not xp.isdtype(M.dtype, "real floating"):
        M = xp.asarray(M, dtype=xp.float64)
    if ndim is not None and M.ndim != ndim:
        msg = f"{name} must have {ndim} dimensions, one sample per row; got shape {tuple(M.shape)}."
        raise ValueError(msg)
    if not bool(xp.all(xp.isfinite(M))):
        msg = f"{name} must be finite; it holds NaN or infinity."
        raise ValueError(msg)
    return M


def _lengths(M: Array) -> Array:
    """Norms of the rows; scaled first, so that squares neither overflow nor vanish."""
    xp = namespace(M)
    if M.shape[1] == 0:
        return xp.sum(M, axis=1)
    largest = xp.max(xp.abs(M), axis=1)
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    return largest * xp.linalg.vector_norm(M / unit[:, None], axis=1)


def _norm(M: Any, row_norm: RowNorm) -> float:
    M = _array(M, "M", ndim=2)
    return float(total(row_norm.value(_lengths(M)), axis=0))


def _shrink(Y: Any, tau: float, row_norm: RowNorm) -> Array:
    Y = _array(Y, "Y", ndim=2)
    check_nonnegative("tau", tau)
    xp = namespace(Y)
    r = _lengths(Y)
    return (1 - kept_share(row_norm, r, xp.full_like(r, float(tau))))[:, None] * Y
