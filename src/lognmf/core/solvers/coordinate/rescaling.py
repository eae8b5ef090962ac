"""The best scale of each component: ``(u_j t, v_j / t)`` fits the data equally well for every t > 0."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from lognmf.core.solvers.coordinate.costs import Costs

LONGEST = 0.8  # longest Newton step, in log t, for which descent is proved
SETTLED = 1e-3  # a setting is done after a Newton step shorter than this

Weights: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


def newton_scale(
    costs: Costs, U: np.ndarray, V: np.ndarray, rough: np.ndarray, weights: Weights, times: int
) -> np.ndarray:
    """Factors (B, k) by which to multiply U's columns, and divide V's, by ``times`` Newton steps at most.

    With the factor written as e^s, the objective depends on s by
    ``h(s) = alpha Σ φ(e^s u) + beta Σ φ(e^−s v) + lam q e^−2s``, q the ``rough``ness. Each term, or the
    bound that replaces it, is convex in s and has ``|h'''| ≤ 2 h''``, hence a Newton step δ gives
    ``h(s + δ) − h(s) ≤ h''·((e^2|δ| − 1 − 2|δ|)/4 − δ²)``, which is negative for 0 < |δ| ≤ 0.8; and a
    shorter step in the same direction falls too, since h is convex. No line search is needed.
    """
    alpha, beta, lam = weights
    factors, moving = np.ones(rough.shape), np.ones(len(rough), dtype=bool)
    for _ in range(times):
        smooth = 2 * lam[:, None] * rough / factors**2
        slope, curvature = -smooth, 2 * smooth
        sides = (alpha, U, factors, costs.on_U, 1), (beta, V, 1 / factors, costs.on_V, -1)
        for weight, F, scale, kernels, sign in sides:
            if weight.any():
                first, second = kernels.scale_derivatives(F, scale)
                slope = slope + sign * weight[:, None] * first
                curvature = curvature + weight[:, None] * second
        step = np.where(curvature > 0, -slope / np.where(curvature > 0, curvature, 1.0), 0.0)
        step = np.clip(step, -LONGEST, LONGEST)
        factors = np.where(moving[:, None], factors * np.exp(step), factors)
        moving = moving & (np.abs(step).max(axis=1) >= SETTLED)
        if not moving.any():
            break
    return factors


def best_scale(
    costs: Costs, U: np.ndarray, V: np.ndarray, rough: np.ndarray, share: np.ndarray, times: int
) -> tuple[np.ndarray, np.ndarray]:
    """Factors (B, k) for the columns of U and of V; a component with an empty side gets zeros.

    ``share`` (B,) of the sparsity penalties counts. Where only one of the sides costs something, the
    best scale is infinite and the component keeps its own.
    """
    alpha, beta, lam = costs.weights(V.shape[1])
    alpha, beta = alpha * share, beta * share
    side_V = (beta > 0) | (lam > 0)
    both = (alpha > 0) & side_V
    if not (alpha.any() or side_V.any()):
        return np.ones(rough.shape), np.ones(rough.shape)
    empty = np.logical_not((U > 0).any(axis=0) & (V > 0).any(axis=0))
    scale = np.ones(empty.shape)
    if times and both.any():
        scale = newton_scale(costs, U, V, rough, (alpha, beta, lam), times)
        scale[~both[:, None] | empty] = 1.0
    return (
        np.where(empty & (alpha > 0)[:, None], 0.0, scale),
        np.where(empty & side_V[:, None], 0.0, 1 / scale),
    )
