"""The second opinion on the baselines: their papers' formulas, literally and slowly.

X is p×n with one sample a *column*, U p×k, V n×k, X ≈ U Vᵀ; L and K = XᵀX are formed. Every
method makes ``steps`` iterations from given factors. Nothing here is shared with the package.
"""

import numpy as np


def pos(M):
    return (np.abs(M) + M) / 2


def neg(M):
    return (np.abs(M) - M) / 2


def laplacian(W):
    return np.diag(W.sum(axis=1)) - W


def indicator(labels, k):
    """The k-means start: 1 for the own cluster, plus 0.2 everywhere."""
    return np.eye(k)[labels] + 0.2


# The iterations -------------------------------------------------------------------------


def nmf(X, U, V, steps):
    """Lee and Seung (2001)."""
    for _ in range(steps):
        U = U * (X @ V) / (U @ V.T @ V)
        V = V * (X.T @ U) / (V @ U.T @ U)
    return U, V


def gnmf(X, U, V, steps, W, lam):
    """Cai et al. (2011), with U before V."""
    D = np.diag(W.sum(axis=1))
    for _ in range(steps):
        U = U * (X @ V) / (U @ V.T @ V)
        V = V * (X.T @ U + lam * W @ V) / (V @ U.T @ U + lam * D @ V)
    return U, V


def normalised(U, V):
    """The columns of U at length 1, those of V inversely: the same U Vᵀ."""
    length = np.sqrt((U**2).sum(axis=0))
    return U / length, V * length


def wnmf(X, U, V, steps, M, alpha=0.0, beta=0.0, lam=0.0, W=None):
    """Kim and Choi (2009); with weights the masked form of eq_update_u and eq_update_v."""
    X = np.where(M > 0, X, 0)
    W = np.zeros((X.shape[1], X.shape[1])) if W is None else W
    D = np.diag(W.sum(axis=1))
    for _ in range(steps):
        U = U * (2 * (M * X) @ V) / (2 * (M * (U @ V.T)) @ V + alpha / (1 + U))
        V = (
            V
            * (2 * (M * X).T @ U + 2 * lam * W @ V)
            / (2 * (M * (U @ V.T)).T @ U + 2 * lam * D @ V + beta / (1 + V))
        )
    return U, V


def onmf(X, U, V, steps):
    """Ding et al. (2006) for VᵀV = I."""
    for _ in range(steps):
        V = V * np.sqrt((X.T @ U) / (V @ V.T @ X.T @ U))
        U = U * (X @ V) / (U @ V.T @ V)
    return U, V


def cnmf(X, B, V, steps):
    """Convex NMF, Ding et al. (2010): U = X B."""
    K = X.T @ X
    P, N = pos(K), neg(K)
    for _ in range(steps):
        V = V * np.sqrt((P @ B + V @ B.T @ N @ B) / (N @ B + V @ B.T @ P @ B))
        B = B * np.sqrt((P @ V + N @ B @ V.T @ V) / (N @ V + P @ B @ V.T @ V))
    return B, V


def semi_nmf(X, V, steps):
    """Ding et al. (2010): U has any sign. An entry of V may become exactly zero, and then stays."""
    U = None
    for _ in range(steps):
        U = X @ V @ np.linalg.inv(V.T @ V)
        A, B = X.T @ U, U.T @ U
        below = np.where(V > 0, neg(A) + V @ pos(B), 1)
        V = V * np.sqrt((pos(A) + V @ neg(B)) / below)
    return U, V


def rmnmf(X, U, V, steps, W, lam, mu=1e-3, rho=1.05, sign=-1):
    """Huang, Nie and Huang (2014): all variables of the augmented Lagrangian method.

    ``sign=-1`` is the Lagrangian's, ``sign=1`` the published program's.
    """
    L = laplacian(W)
    E, H = np.zeros_like(X), V
    G, S = np.zeros_like(X), np.zeros_like(V)  # the multipliers Γ and Σ
    for _ in range(steps):
        E = shrink_columns(X - U @ V.T + G / mu, 1 / mu)
        U = (X - E + G / mu) @ V @ np.linalg.inv(V.T @ V)
        H = np.maximum(V + S / mu - lam / mu * L @ V, 0)
        N = H - S / mu + sign * lam / mu * L @ H + (X - E + G / mu).T @ U
        P, _, Qt = np.linalg.svd(N, full_matrices=False)
        V = P @ Qt
        G = G + mu * (X - U @ V.T - E)
        S = S + mu * (V - H)
        mu = rho * mu
    return {"U": U, "V": V, "E": E, "H": H, "Gamma": G, "Sigma": S, "mu": mu}


def shrink_columns(Q, tau):
    """argmin_E ½‖E − Q‖² + τ Σ_i ‖e_i‖ over the columns."""
    E = np.zeros_like(Q)
    for i, q in enumerate(Q.T):
        length = np.sqrt(np.sum(q**2))
        if length > tau:
            E[:, i] = (length - tau) * q / length
    return E


# The objectives -------------------------------------------------------------------------


def squared_error(X, U, V):
    return np.sum((X - U @ V.T) ** 2)


def graph_error(X, U, V, W, lam):
    return squared_error(X, U, V) + lam * np.trace(V.T @ laplacian(W) @ V)


def weighted_error(X, U, V, M):
    return np.sum(M * (np.where(M > 0, X, 0) - U @ V.T) ** 2)


def l21_error(X, U, V, W, lam):
    lengths = np.sqrt(((X - U @ V.T) ** 2).sum(axis=0))
    return lengths.sum() + lam * np.trace(V.T @ laplacian(W) @ V)
