"""One iteration on the codes of samples for a fixed basis, the rule behind `encode`.

With U fixed and no graph the samples are independent, so *they* are the batch: each leaves it when
it has converged. Sweeps over the coordinates find out which of them are positive. With strongly
correlated parts they are slow from there on, so an exact step on the positive ones follows each.
The data enter only through ``X @ U``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import array_api_compat
import numpy as np

from lognmf.core.arrays import Array, gram, namespace, on_gpu, positive, row_dot, take, to_numpy
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.terms.l1 import L1
from lognmf.core.terms.protocol import RowNorm, SeparablePenalty
from lognmf.core.terms.robust import kept_share, robust_value
from lognmf.core.threads import split

BLOCK_NUMBERS, GPU_BLOCK_NUMBERS = 1 << 16, 1 << 26  # entries of the k×k systems that are solved together
COMPILED_WORK = 1 << 18  # multiplications of a sweep from which it pays to load the compiled loops
STEPS = 10  # usual steps of a code
EXPLORING_SWEEPS = 2  # sweeps of a start before and after its exchange


@dataclass(frozen=True)
class Codes:
    """A sweep over the k coordinates of every sample's code, then an exact step on the positive ones.

    The batch axis is that of the samples. The robust fit is minimised through row weights: φ is
    concave in r², so ``kept · r²`` majorises it, as the tangent does a concave penalty, and no
    step raises the objective.
    """

    gram: Array  # UᵀU, (k, k), or (n, k, k): one for each sample over its known entries
    squared_norms: Array  # ‖x_i‖², (n,)
    penalty: SeparablePenalty | None = None  # its weight repeated for each sample
    row_norm: RowNorm | None = None  # of the robust fit; None for the plain one
    weight: Array | None = None  # of the robust fit, (n,)
    # Whether basis and data are nonnegative and the penalty only pulls down. Then no coordinate exceeds
    # what it would be alone; with parts of very different size rounding could say otherwise.
    bounded: bool = False

    @classmethod
    def of(cls, problem: Problem, U: Array) -> tuple[Codes, State]:
        """The rule and its start for the basis ``U`` (p, k); weights of the terms are those of each sample.

        Weights of entries are zeros and ones: which are known.
        """
        xp = namespace(U)
        data: Any = problem.data
        fit = problem.fit
        n, (p, k) = data.shape[0], U.shape
        if data.M is None:
            UU = gram(U[:, None, :], U[:, None, :])[0, ...]
        else:
            UU = xp.reshape(data.M @ xp.reshape(U[:, :, None] * U[:, None, :], (p, k * k)), (n, k, k))
        XU = xp.permute_dims(fit.project(data, U[:, None, :]), (1, 0, 2))
        # The best nonnegative multiple of the all-ones code.
        tiny = float(xp.finfo(U.dtype).smallest_normal)
        scale = xp.sum(XU, axis=2) / (xp.abs(xp.sum(UU, axis=(-2, -1))) + tiny)
        V = xp.where(scale > 0, scale, xp.zeros_like(scale))[:, :, None] * xp.ones_like(XU)
        penalty: Any = problem.on_V[0] if problem.on_V else None
        pulls_up = penalty is not None and penalty.halves(V)(slice(None))[0] is not None
        rule = cls(
            UU,
            data.squared_norms,
            penalty,
            getattr(fit, "row_norm", None),
            getattr(fit, "weight", None),
            bounded=not pulls_up and bool(xp.min(UU) >= 0) and bool(xp.min(XU) >= 0),
        )
        return rule, State(XU[:0, ...], V, (XU,))

    def residual_norms(self, V: Array, XU: Array) -> Array:
        """``‖x_i − U v_i‖``, shape (n,), from V and XU of shape (1, n, k)."""
        xp = namespace(V)
        squared = self.squared_norms - row_dot(2 * XU - self._mixed(V[0, ...]), V)[0, :]
        return xp.sqrt(xp.where(squared > 0, squared, xp.zeros_like(squared)))

    def kept(self, V: Array, XU: Array) -> Array:
        """Share of each sample's residual that stays in the fit, shape (n,)."""
        r = self.residual_norms(V, XU)
        if self.row_norm is None or self.weight is None:
            return namespace(V).ones_like(r)
        return kept_share(self.row_norm, r, self.weight / 2)

    def step(self, state: State) -> State:
        return self._settle(self._sweep(state), state.V.shape[2])

    def solved(self, state: State, max_iter: int, tol: float) -> State | None:
        """The state after steps until two gain at most 2 ``tol``, for a plain fit, by compiled loops.

        None for few samples, other arrays, penalties without scalar functions and values that are not finite.
        """
        penalty: Any = L1(np.zeros(state.batch)) if self.penalty is None else self.penalty
        (XU,) = state.aux
        if not isinstance(XU, np.ndarray) or XU.size * XU.shape[2] < COMPILED_WORK:
            return None
        if not all(hasattr(penalty, name) for name in ("cost", "slope", "minimum")) or not find_spec("numba"):
            return None
        from lognmf.core.solvers.compiled_codes import solver  # numba takes a while to import

        loop = solver(penalty.cost, penalty.slope, penalty.minimum)
        V = np.array(state.V[0], order="C")
        problem = (self.gram.reshape(-1, *self.gram.shape[-2:]), XU[0], self.squared_norms, penalty.weight)
        limits = (self.bounded, np.finfo(V.dtype).eps, tol, max_iter)
        finite: list[bool] = []
        split(
            lambda part: finite.append(loop(*problem, *limits, V, part.start, part.stop)),
            len(V),
            STEPS * 4.0 * XU.size * XU.shape[2],
        )
        return replace(state, V=V[None, ...]) if all(finite) else None

    def _settle(self, state: State, times: int) -> State:
        """Exact steps on the positive entries, until none of them becomes 0 on the way."""
        xp = namespace(state.V)
        V, stopped = self._exact(state)
        # Rounding may spoil the step where parts are nearly the same; the last digits of the
        # objective are rounding themselves.
        digits = 4 * float(xp.finfo(V.dtype).eps) * self.squared_norms
        falls = self.value(replace(state, V=V)) <= self.value(state) + digits
        state = replace(state, V=xp.where(falls[None, :, None], V, state.V))
        again = to_numpy(stopped & falls)
        if times == 1 or not again.any():
            return state
        more = np.flatnonzero(again)
        return state.replaced(more, self.take(more)._settle(state.take(more), times - 1))

    def _sweep(self, state: State) -> State:
        xp = namespace(state.V)
        tiny = float(xp.finfo(state.V.dtype).smallest_normal)
        (XU,) = state.aux
        kept = self.kept(state.V, XU)
        V = xp.asarray(state.V[0, ...], copy=True)
        for j in range(V.shape[1]):
            own = self.gram[..., j, j]
            column = self.gram[..., :, j]
            mixed = V @ column if column.ndim == 1 else xp.vecdot(V, column, axis=-1)
            slope = kept * (XU[0, :, j] - mixed + V[:, j] * own)
            curvature = kept * own + tiny
            best = self._minimise(curvature, slope, V[:, j])
            if self.bounded:
                most = XU[0, :, j] / (own + tiny)
                best = xp.where(best > most, most, best)
            V[:, j] = best
        return State(state.U, V[None, ...], state.aux)

    def _exact(self, state: State) -> tuple[Array, Array]:
        """Codes (1, n, k) after the majoriser's Newton step on the positive entries; who was stopped (n,)."""
        xp = namespace(state.V)
        (XU,) = state.aux
        V, kept = state.V[0, ...], self.kept(state.V, XU)
        n, k = V.shape
        half = kept[:, None] * (self._mixed(V) - XU[0, ...])
        if self.penalty is not None:
            neg, pos = self.penalty.halves(state.V)(slice(None))
            half = half + (pos if neg is None else pos - neg)[0, ...]
        rows_a_block = max(1, (GPU_BLOCK_NUMBERS if on_gpu(V) else BLOCK_NUMBERS) // (k * k))
        blocks = []
        for start in range(0, n, rows_a_block):
            rows = slice(start, min(start + rows_a_block, n))
            G = self.gram if self.gram.ndim == 2 else self.gram[rows, ...]
            step = _newton(kept[rows, None, None] * G, half[rows, :], V[rows, :])
            blocks.append(_go(V[rows, :], step))
        moved, stopped = zip(*blocks, strict=True)
        return xp.concat(moved, axis=0)[None, ...], xp.concat(stopped, axis=0)

    def _mixed(self, V: Array) -> Array:
        """``UᵀU v`` of every sample, (n, k)."""
        return V @ self.gram if self.gram.ndim == 2 else (V[:, None, :] @ self.gram)[:, 0, :]

    def surely_best(self, state: State) -> np.ndarray:
        """Whether a local minimum is the best code, (n,): where all that could be lower is convex.

        The data term curves up by 2 λ at least, the penalty down by its weight times `concavity` at most. A
        robust fit is the plain one below the dead zone of its residual, and costs more than the square of
        the dead zone elsewhere.
        """
        if self.penalty is None:
            return np.ones(state.batch, dtype=bool)
        curvature = positive(namespace(state.V).linalg.eigvalsh(self.gram)[..., 0])
        sure = self.penalty.weight * getattr(self.penalty, "concavity", np.inf) <= 2 * curvature
        if self.row_norm is not None and self.weight is not None:
            sure = sure & (self.value(state) <= self.row_norm.dead_zone(self.weight / 2) ** 2)
        return to_numpy(sure)

    def explored(self, state: State) -> State:
        """Sweeps, an exchange, sweeps: cheap, and near a local minimum."""
        for step in (*[self._sweep] * EXPLORING_SWEEPS, self.exchanged, *[self._sweep] * EXPLORING_SWEEPS):
            state = step(state)
        return state

    def exchanged(self, state: State) -> State:
        """The best codes after one exchange: an entry, or none, becomes 0, and one is minimised over.

        Along an entry the penalty may have two minima, at 0 and further up; values decide between them. The
        one further up is also taken with the whole residual in the fit, as a better fit would have it.
        """
        xp, (aux,) = namespace(state.V), state.aux
        V, kept = state.V[0, ...], self.kept(state.V, aux)
        shares = [kept] if self.row_norm is None else [kept, xp.ones_like(kept)]
        own = xp.stack([self.gram[..., j, j] for j in range(V.shape[1])], axis=-1)
        places = xp.arange(V.shape[1], device=array_api_compat.device(V))
        costs, best, lowest = self._entry_costs(V), V, self.value(state)
        # Uᵀ times the residual, the squared residual, the penalties; below without entry j, if there is one.
        pull, squared, penalties = aux[0, ...] - self._mixed(V), self.residual_norms(state.V, aux) ** 2, costs
        for j in (None, *range(V.shape[1])):
            rest, pulls, left = V, pull, squared
            if j is not None:
                rest, penalties = (xp.where(places == j, xp.zeros_like(F), F) for F in (V, costs))
                pulls = pull + V[:, j, None] * self.gram[..., :, j]
                left = squared + V[:, j] * (pull[:, j] + pulls[:, j])
            for share in shares:
                entries, values = self._set_anew(rest, pulls, left, penalties, own, share)
                value = xp.min(values, axis=1)
                new = xp.where(places == xp.argmin(values, axis=1)[:, None], entries, rest)
                best = xp.where((value < lowest)[:, None], new, best)
                lowest = xp.where(value < lowest, value, lowest)
        return replace(state, V=best[None, ...])

    def _set_anew(
        self, V: Array, pull: Array, squared: Array, costs: Array, own: Array, share: Array
    ) -> tuple[Array, Array]:
        """Each entry's minimum with the others as they are, and the objective there, both (n, k)."""
        xp = namespace(V)
        tiny = float(xp.finfo(V.dtype).smallest_normal)
        slope = pull + V * own  # that of the residual without the entry
        squared = squared[:, None] + V * (pull + slope)
        penalty: Any = self.penalty
        weight, part = penalty.weight[:, None], share[:, None]
        entries = penalty.minimise(part * own + tiny, part * slope, weight, positive(slope) / (own + tiny))
        left = xp.sqrt(positive(squared - entries * (2 * slope - own * entries)))
        fit = left**2 if self.row_norm is None else self._robust(left.T).T
        others = xp.sum(costs, axis=1)[:, None] - costs
        return entries, fit + others + self._entry_costs(entries)

    def _entry_costs(self, V: Array) -> Array:
        """What the penalty takes for each entry, (n, k)."""
        penalty: Any = self.penalty
        columns = [penalty.value(V[None, :, j : j + 1]) for j in range(V.shape[1])]
        return namespace(V).stack(columns, axis=1)

    def _minimise(self, curvature: Array, slope: Array, at: Array) -> Array:
        if self.penalty is not None:
            return self.penalty.minimise(curvature, slope, self.penalty.weight, at)
        best = slope / curvature
        return namespace(best).where(best > 0, best, namespace(best).zeros_like(best))

    def value(self, state: State) -> Array:
        (XU,) = state.aux
        r = self.residual_norms(state.V, XU)
        value = r**2 if self.row_norm is None else self._robust(r)
        return value if self.penalty is None else value + self.penalty.value(state.V)

    def _robust(self, r: Array) -> Array:
        rule: Any = self
        return robust_value(rule.row_norm, r, rule.weight)

    def take(self, index: np.ndarray) -> Codes:
        return replace(
            self,
            gram=self.gram if self.gram.ndim == 2 else take(self.gram, index, axis=0),
            squared_norms=take(self.squared_norms, index, axis=0),
            penalty=None if self.penalty is None else self.penalty.take(index),
            weight=None if self.weight is None else take(self.weight, index, axis=0),
        )


def _newton(H: Array, half: Array, V: Array) -> Array:
    """``−H⁻¹ half`` on the positive entries of V, 0 on the others: (n, k, k), (n, k), (n, k) → (n, k).

    H is scaled to a unit diagonal, and a little is added there: parts may be the same.
    """
    xp = namespace(V)
    own = xp.stack([H[:, j, j] for j in range(V.shape[1])], axis=1)
    free = (V > 0) & (own > 0)
    scale = xp.where(free, 1 / xp.sqrt(xp.where(free, own, xp.ones_like(own))), xp.zeros_like(own))
    identity = xp.eye(V.shape[1], dtype=V.dtype, device=array_api_compat.device(V))
    little = 8 * V.shape[1] * float(xp.finfo(V.dtype).eps)
    fixed = xp.where(free, xp.full_like(own, little), xp.ones_like(own))
    system = H * scale[:, :, None] * scale[:, None, :] + fixed[:, :, None] * identity
    return -scale * xp.linalg.solve(system, (scale * half)[:, :, None])[..., 0]


def _go(V: Array, step: Array) -> tuple[Array, Array]:
    """``V + t · step`` with the largest t ≤ 1 that keeps it nonnegative, and whether t < 1.

    The entry that stops it becomes 0.
    """
    xp = namespace(V)
    stopping = -step > V  # only these are divided: the others have room for a whole step
    room = xp.where(stopping, V / xp.where(stopping, -step, xp.ones_like(step)), xp.full_like(V, xp.inf))
    t = xp.min(room, axis=1, keepdims=True)
    stopped = t < 1
    t = xp.where(stopped, t, xp.ones_like(t))
    moved = V + t * step
    return xp.where((moved > 0) & (room > t), moved, xp.zeros_like(moved)), stopped[:, 0]
