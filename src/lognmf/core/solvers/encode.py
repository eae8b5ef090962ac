"""Codes ``V`` of samples for a fixed basis ``U``: what `transform` solves.

With U fixed and no graph the samples are independent, and the data enter only through ``X @ U``. Compiled
loops solve one sample after another, in float64. Plain codes have one minimum. A concave penalty or a robust
fit has several: then two more starts and exchanges of entries look for the best of them.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np
from scipy.optimize import nnls

from lognmf.core.arrays import Array, double, gram, like, namespace, positive, to_numpy
from lognmf.core.data import InMemory
from lognmf.core.loop import NOT_FINITE, iterate
from lognmf.core.matrices import stored_values
from lognmf.core.problem import Problem
from lognmf.core.solvers.coordinate.limits import SCALAR_FUNCTIONS, refuses
from lognmf.core.solvers.multiplicative import MultiplicativeCodes
from lognmf.core.terms.l1 import L1
from lognmf.core.terms.protocol import RowNorm
from lognmf.core.terms.robust import kept_share, robust_value
from lognmf.core.threads import split

MOST_STEPS, TOLERANCE = 500, 1e-14  # steps of a code; the share of its objective that the last one gains
FIRST_STEPS = 2  # steps towards least squares before the penalty counts
EXPLORING_STEPS = 1  # steps of a start before and after its exchange
MOST_EXCHANGES = 10  # exchanges of a solved code; two or three are usual
IMPROVED = 1e-6  # codes that lower the objective by less than this share are not better


# Squares of parts overflow in float32, and with gamma=0 there is no curvature; what is not finite is refused.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def encode(problem: Problem, U: Array) -> Array:
    """Codes (n, k) of the samples of ``problem`` for the basis ``U`` (p, k), each solved to tolerance.

    The terms have one weight per sample. Quadratic fits with at most one penalty that has functions of one
    number are solved exactly; the divergence by coordinate descent and Newton steps where the data allow it;
    others by multiplicative updates.
    """
    data: Any = problem.data  # a block
    on_V = problem.on_V
    functions = [getattr(penalty, name, None) for penalty in on_V for name in SCALAR_FUNCTIONS]
    if problem.fit.quadratic and len(on_V) <= 1 and all(isinstance(f, FunctionType) for f in functions):
        codes = Codes.of(problem, U)
        return like(_told_apart(codes, data, U, codes.best()), U)
    if hasattr(problem.fit, "row_norm"):
        msg = (
            "transform of a robust fit takes at most one penalty on V, and one with the static methods "
            f"{', '.join(SCALAR_FUNCTIONS)}."
        )
        raise ValueError(msg)
    if not problem.fit.quadratic and refuses(problem) is None:
        from lognmf.core.solvers.coordinate.rowwise import Entries, encoded  # numba takes a while to import

        penalty: Any = on_V[0] if on_V else L1(np.zeros(1))
        return encoded(Entries.of(data), U, penalty)
    gradual = MultiplicativeCodes(data, problem.fit, U[:, None, :], on_V)
    return iterate(gradual, gradual.start(), max_iter=5000, tol=1e-10, eval_every=10).state.V[0, ...]


@dataclass(frozen=True)
class Codes:
    """What the codes V (n, k) of samples cost, and how they become better; all in NumPy and float64.

    The robust fit is minimised through weights of the samples: φ is concave in r², so ``kept · r²`` lies
    above it and touches it, as the tangent of a concave penalty does, and no step raises the objective.
    """

    gram: np.ndarray  # UᵀU, (1, k, k), or (n, k, k): one for each sample over its known entries
    pull: np.ndarray  # X U, (n, k)
    squares: np.ndarray  # ‖x_i‖², (n,)
    penalty: Any  # a `SeparablePenalty`; its weight is that of each sample
    row_norm: RowNorm | None  # of the robust fit; None for the plain one
    weight: np.ndarray  # of the robust fit, (n,)
    eps: float  # rounding of the data, and their smallest normal number
    tiny: float
    # Whether basis and data are nonnegative and the penalty only pulls down. Then no coordinate exceeds
    # what it would be alone; with parts of very different size rounding could say otherwise.
    bounded: bool

    @classmethod
    def of(cls, problem: Problem, U: Array) -> Codes:
        """For the basis ``U`` (p, k)."""
        xp, fit = namespace(U), problem.fit
        data: Any = problem.data
        n, (p, k) = data.shape[0], U.shape
        largest = 1.0
        if data.M is None:
            UU = gram(U[:, None, :], U[:, None, :])
        else:
            UU = data.M @ xp.reshape(U[:, :, None] * U[:, None, :], (p, k * k))
            # With larger weights, what a sample costs may exceed its norm.
            largest = max(1.0, float(stored_values(data.M).max()))
        UU = np.reshape(to_numpy(double(UU)), (-1, k, k))
        XU = to_numpy(double(fit.project(data, U[:, None, :])))[:, 0, :]
        penalty: Any = problem.on_V[0] if problem.on_V else L1(np.zeros(n))
        penalty = replace(penalty, weight=to_numpy(double(penalty.weight)))
        return cls(
            UU,
            np.ascontiguousarray(XU),
            to_numpy(double(data.squared_norms)) * largest,
            penalty,
            getattr(fit, "row_norm", None),
            to_numpy(double(getattr(fit, "weight", data.squared_norms))),
            float(xp.finfo(U.dtype).eps),
            float(xp.finfo(U.dtype).smallest_normal),
            bounded=penalty.slope(0.0) >= 0 and bool(UU.min(initial=0) >= 0 and XU.min(initial=0) >= 0),
        )

    def take(self, index: np.ndarray) -> Codes:
        """The samples ``index``."""
        by_sample = {name: getattr(self, name)[index] for name in ("pull", "squares", "weight")}
        own = self.gram if len(self.gram) == 1 else self.gram[index]
        return replace(self, gram=own, penalty=self.penalty.take(index), **by_sample)

    # The objective ---------------------------------------------------------------------

    def value(self, V: np.ndarray) -> np.ndarray:
        """Objective of every sample, (n,)."""
        return self._fit(self.residuals(V)) + self._penalties(V).sum(axis=1)

    def residuals(self, V: np.ndarray) -> np.ndarray:
        """``‖x_i − U v_i‖``, (n,)."""
        squared = self.squares - np.einsum("ij,ij->i", 2 * self.pull - self._mixed(V), V)
        return np.sqrt(positive(squared))

    def kept(self, V: np.ndarray) -> np.ndarray:
        """Share of each sample's residual that stays in the fit, (n,)."""
        if self.row_norm is None:
            return np.ones(len(V))
        return kept_share(self.row_norm, self.residuals(V), self.weight / 2)

    def _fit(self, r: np.ndarray) -> np.ndarray:
        """What residuals of norms (…, n) cost."""
        return r**2 if self.row_norm is None else robust_value(self.row_norm, r, self.weight)

    def _mixed(self, V: np.ndarray) -> np.ndarray:
        """``UᵀU v`` of every sample, (n, k)."""
        return V @ self.gram[0] if len(self.gram) == 1 else (V[:, None, :] @ self.gram)[:, 0, :]

    def _penalties(self, V: np.ndarray) -> np.ndarray:
        """What the penalty takes for each entry, (n, k)."""
        columns = [self.penalty.value(V[None, :, j : j + 1]) for j in range(V.shape[1])]
        return np.stack(columns, axis=1)

    # Descent ---------------------------------------------------------------------------

    def start(self) -> np.ndarray:
        """The best nonnegative multiple of the all-ones code."""
        scale = self.pull.sum(axis=1) / (abs(self.gram.sum(axis=(1, 2))) + self.tiny)
        return np.repeat(positive(scale)[:, None], self.pull.shape[1], axis=1)

    def solved(self, V: np.ndarray) -> np.ndarray:
        """The local minimum that descent from V leads to.

        A robust fit is the plain one as long as the residual is in its dead zone: a minimum there is one of
        both. Without a penalty both have the same minimum everywhere.
        """
        new = self.descended(V, np.ones(len(V)))
        if self.row_norm is None or not self.penalty.weight.any():
            return new
        # The plain descent may also have left a lower minimum outside of the dead zone.
        active = np.flatnonzero((self.kept(new) < 1) | (self.value(new) > self.value(V)))
        part = self.take(active)
        new[active], before = V[active], part.value(V[active])
        for _ in range(MOST_STEPS // 2):
            if not active.size:
                break
            new[active] = part.descended(new[active], part.kept(new[active]), 2)
            after = part.value(new[active])
            moving = np.flatnonzero(before - after > 2 * TOLERANCE * abs(before))
            active, part, before = active[moving], part.take(moving), after[moving]
        return new

    def descended(self, V: np.ndarray, kept: np.ndarray, steps: int = MOST_STEPS) -> np.ndarray:
        """V after some steps on the plain fit with this weight ``kept`` (n,) of every sample."""
        from lognmf.core.solvers.compiled_codes import solver  # numba takes a while to import

        out, k = np.array(V, order="C"), V.shape[1]
        loop = solver(*(getattr(self.penalty, name) for name in SCALAR_FUNCTIONS))
        problem = (self.gram, self.pull, self.squares, kept, self.penalty.weight)
        limits = (self.bounded, self.eps, self.tiny, TOLERANCE, steps)
        finite: list[bool] = []

        def solve(part: slice) -> None:
            finite.append(loop(*problem, *limits, out, part.start, part.stop))

        split(solve, len(V), 40.0 * len(V) * k**2)  # ten steps are usual
        if not all(finite):
            raise FloatingPointError(NOT_FINITE.format(0))
        return out

    # The best of several minima --------------------------------------------------------

    def best(self) -> np.ndarray:
        """The codes from the usual start; where others may be better, the best ones that are found.

        From zeros and from the codes of least squares, steps and an exchange lead to two more codes. Better
        ones are solved to tolerance, and the best is exchanged as long as that helps.
        """
        V = self.solved(self.start())
        doubtful = np.flatnonzero(~self.surely_best(V))
        if not doubtful.size:
            return V
        part, old = self.take(doubtful), V[doubtful]
        plain = replace(part, penalty=L1(np.zeros(len(old))))
        for start in (plain.descended(old, np.ones(len(old)), FIRST_STEPS), np.zeros_like(old)):
            self._improve(V, doubtful, part.explored(start))
        for _ in range(MOST_EXCHANGES):
            doubtful = self._improve(V, doubtful, self.take(doubtful).exchanged(V[doubtful]))
            if not doubtful.size:
                break
        return V

    def _improve(self, V: np.ndarray, index: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Replace the codes of the samples ``index`` by those of ``new`` that are better, solved; which."""
        part = self.take(index)
        better = np.flatnonzero(part.value(new) < (1 - IMPROVED) * part.value(V[index]))
        if better.size:
            V[index[better]] = part.take(better).solved(new[better])
        return index[better]

    def surely_best(self, V: np.ndarray) -> np.ndarray:
        """Whether a local minimum is the best code, (n,): where all that could be lower is convex.

        The data term curves up by 2 λ at least, the penalty down by its weight times `concavity` at most. A
        robust fit is the plain one below the dead zone of its residual, and costs more than the square of
        the dead zone elsewhere.
        """
        price = self.penalty.weight
        curvature = positive(np.linalg.eigvalsh(self.gram)[:, 0])
        sure = price * getattr(self.penalty, "concavity", np.inf) <= 2 * curvature
        if self.row_norm is not None:
            sure = sure & (self.value(V) <= self.row_norm.dead_zone(self.weight / 2) ** 2)
        return sure | (price == 0)

    def explored(self, V: np.ndarray) -> np.ndarray:
        """A step, an exchange, a step: cheap, and near a local minimum."""
        V = self.exchanged(self.descended(V, self.kept(V), EXPLORING_STEPS))
        return self.descended(V, self.kept(V), EXPLORING_STEPS)

    def exchanged(self, V: np.ndarray) -> np.ndarray:
        """The best codes after one exchange: an entry, or none, becomes 0, and one is minimised over.

        Along an entry the penalty may have two minima, at 0 and further up; values decide between them. The
        one further up is also taken with the whole residual in the fit, as a better fit would have it.
        """
        kept, places = self.kept(V), np.arange(V.shape[1])
        shares = [kept] if self.row_norm is None else [kept, np.ones_like(kept)]
        costs, best, lowest = self._penalties(V), V, self.value(V)
        # Uᵀ times the residual, the squared residual, the penalties; below without entry j, if there is one.
        pull, squared = self.pull - self._mixed(V), self.residuals(V) ** 2
        for j in (None, *places):
            rest, penalties, pulls, left = V, costs, pull, squared
            if j is not None:
                rest, penalties = (np.where(places == j, 0.0, F) for F in (V, costs))
                pulls = pull + V[:, j, None] * self.gram[:, :, j]
                left = squared + V[:, j] * (pull[:, j] + pulls[:, j])
            for share in shares:
                entries, values = self.set_anew(rest, pulls, left, penalties, share)
                value, lowest_place = values.min(axis=1), values.argmin(axis=1)[:, None]
                new = np.where(places == lowest_place, entries, rest)
                best = np.where((value < lowest)[:, None], new, best)
                lowest = np.minimum(value, lowest)
        return best

    def set_anew(
        self, V: np.ndarray, pull: np.ndarray, squared: np.ndarray, costs: np.ndarray, share: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Each entry's minimum with the others as they are, and the objective there, both (n, k)."""
        own = np.diagonal(self.gram, axis1=1, axis2=2)
        slope = pull + V * own  # that of the residual without the entry
        squared = squared[:, None] + V * (pull + slope)
        part, curvature = share[:, None], own + self.tiny
        at = positive(slope) / curvature
        entries = self.penalty.minimise(part * curvature, part * slope, self.penalty.weight[:, None], at)
        left = np.sqrt(positive(squared - entries * (2 * slope - own * entries)))
        others = costs.sum(axis=1)[:, None] - costs
        return entries, self._fit(left.T).T + others + self._penalties(entries)


def _told_apart(codes: Codes, data: InMemory, U: Array, V: np.ndarray) -> np.ndarray:
    """Codes ``V`` (n, k) of plain least squares, where parts ``U`` (p, k) of any sign are all but dependent.

    Their differences then count, and UᵀU, with the square of U's condition, has lost them. SciPy's active
    sets work with U itself. Nonnegative parts cannot cancel, and need none of it.
    """
    if codes.bounded or codes.penalty.weight.any() or codes.row_norm is not None or len(codes.gram) > 1:
        return V
    parts = to_numpy(double(U))
    scale = np.linalg.norm(parts, axis=0)
    alive = np.flatnonzero(scale > 0)
    Q, R = np.linalg.qr(parts[:, alive] / scale[alive])
    sizes = np.linalg.svd(R, compute_uv=False)
    if len(sizes) == len(alive) and (sizes > codes.eps ** (1 / 3) * sizes[:1]).all():
        return V
    samples = to_numpy(double(data.times(like(Q[:, None, :], U))))[:, 0, :]
    found = V[:, alive] * scale[alive]
    # Where the slope of the error is zero, or pushes a code of zero down, nothing is better.
    slope = (samples - found @ R.T) @ R
    rounding = 1e-13 * np.linalg.norm(samples, axis=1)[:, None]
    doubtful = ((slope > rounding) | ((found > 0) & (slope < -rounding))).any(axis=1)
    for i in np.flatnonzero(doubtful):
        with contextlib.suppress(RuntimeError):  # too many steps: the code stays as it is
            better, distance = nnls(R, samples[i])
            if distance < np.linalg.norm(samples[i] - R @ found[i]):
                found[i] = better
    best = V.copy()
    found = found / scale[alive]
    best[:, alive] = np.where(np.isfinite(found), found, best[:, alive])
    return best
