"""The second opinion: the paper's formulas, literally and slowly, in the paper's own orientation.

X is p×n with one sample a *column*, U p×k, V n×k, X ≈ U Vᵀ; S and L are formed. Nothing
here is shared with the package.
"""

import numpy as np


def shrink_column(y, tau, row_norm):
    """eq_sol_soft_thres for one column (l2log), or the ℓ2,1 soft threshold."""
    r = np.sqrt(np.sum(y**2))
    if row_norm == "l21":
        return y * (max(r - tau, 0) / r) if r > 0 else 0 * y
    if (1 + r) ** 2 > 4 * tau:
        xi = (r - 1) / 2 + np.sqrt((1 + r) ** 2 / 4 - tau)
        if xi > 0 and 0.5 * (xi - r) ** 2 + tau * np.log(1 + xi) <= 0.5 * r**2:
            return xi / r * y
    return 0 * y


def shrink(Y, tau, row_norm="l2log"):
    return np.stack([shrink_column(y, tau, row_norm) for y in Y.T], axis=1)


def slope(F, penalty):
    return 1 / (1 + F) if penalty == "log" else np.ones_like(F)


def size(F, penalty):
    return np.log(1 + F).sum() if penalty == "log" else F.sum()


def objective(X, U, V, W, *, alpha, beta, lam, gamma=None, penalty="log", row_norm="l2log"):
    """eq_obj_log, or eq_obj_log_robust at the best S when gamma is given."""
    L = np.diag(W.sum(axis=1)) - W
    S = np.zeros_like(X) if gamma is None else shrink(X - U @ V.T, gamma / 2, row_norm)
    value = np.sum((X - S - U @ V.T) ** 2) + lam * np.trace(V.T @ L @ V)
    value += alpha * size(U, penalty) + beta * size(V, penalty)
    if gamma is not None:
        norms = np.sqrt((S**2).sum(axis=0))
        value += gamma * (np.log(1 + norms).sum() if row_norm == "l2log" else norms.sum())
    return value


def iterate(X, U, V, W, steps, *, alpha, beta, lam, gamma=None, penalty="log", row_norm="l2log"):
    """eq_update_s, eq_update_u_robust, eq_update_v_robust; without gamma eq_update_u, eq_update_v."""
    D = np.diag(W.sum(axis=1))
    S = np.zeros_like(X)
    for _ in range(steps):
        if gamma is not None:
            S = shrink(X - U @ V.T, gamma / 2, row_norm)
        U = U * (2 * (X - S) @ V) / (2 * U @ V.T @ V + alpha * slope(U, penalty))
        V = (
            V
            * (2 * ((X - S).T @ U + lam * W @ V))
            / (2 * V @ U.T @ U + 2 * lam * D @ V + beta * slope(V, penalty))
        )
    return U, V, S
