"""The point that a step of coordinate descent works on, and how far its run has come."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from lognmf.core.arrays import Array, chosen
from lognmf.core.rows import Rows

WINDOW = 5  # steps over which the pace is measured: a single step may have been rejected
OUTLOOK = 30  # a run is lost if this many steps at its pace would not reach the best objective
RAMP_STEPS = 4  # steps of the ramp per power of ten by which the penalties grow
RAMP_MOMENTUM = 0.3  # momentum of all steps on the ramp
FIRST_MOMENTUM = 0.5  # momentum of the first extrapolated step after the ramp
MOMENTUM_GROWTH = 1.05  # an accepted step multiplies the momentum by this (Ang and Gillis 2019)
MOMENTUM_SHRINKAGE = 1.5  # a rejected step divides the momentum by this, and caps it at its previous value
CAP_GROWTH = 1.01  # an accepted step multiplies the cap of the momentum by this
FIRST_SLOWNESS = 0.5  # after a step that was rejected although it did not extrapolate
SLOWEST = 100.0  # rounding may reject any step
LARGEST_CAP = 0.9999  # the cap of the momentum stays below this


@dataclass(frozen=True, eq=False)
class Progress:
    """How far each setting has come; arrays of shape (B,) in float64."""

    age: np.ndarray  # steps since the ramp began
    ramp: np.ndarray  # length of the ramp in steps
    share: np.ndarray  # share of the penalties that counts at the beginning of the ramp
    momentum: np.ndarray  # how far extrapolated steps go
    cap: np.ndarray  # what the momentum may not exceed
    plain: np.ndarray  # 1 if the next step does not extrapolate, else 0
    zero: np.ndarray  # objective of U = V = 0
    best: np.ndarray  # lowest objective so far
    escaped: np.ndarray  # lowest objective at the time of the last escape
    exchanges: np.ndarray  # exchanges since one last helped
    slow: np.ndarray  # how much shorter steps are: curvatures are multiplied by 1 + slow
    recent: np.ndarray  # the last objectives, the newest at the end, (WINDOW + 1, B)

    @classmethod
    def first(cls, value: np.ndarray, zero: np.ndarray) -> Progress:
        """The progress of a run that begins at the objective ``value``."""
        none, one = np.zeros(len(value)), np.ones(len(value))
        recent = np.tile(value, (WINDOW + 1, 1))
        new = cls(none, none, one, none, one, one, zero, value, none + np.inf, none, none, recent)
        return new.on_ramp(one)

    @classmethod
    def unpacked(cls, rows: np.ndarray) -> Progress:
        """The progress whose fields are these rows."""
        *names, _ = (field.name for field in fields(cls))
        return cls(**dict(zip(names, rows, strict=False)), recent=rows[len(names) :])

    def packed(self) -> np.ndarray:
        """All fields as the rows of one array, (rows, B)."""
        return np.vstack([getattr(self, field.name) for field in fields(self)])

    def on_ramp(self, share: np.ndarray) -> Progress:
        """The same at the beginning of a ramp from ``share`` (B,) of the penalties; 1 means no ramp."""
        none, one, ramp = np.zeros(len(share)), np.ones(len(share)), np.ceil(-RAMP_STEPS * np.log10(share))
        momentum = FIRST_MOMENTUM * one
        return replace(self, age=none, share=share, ramp=ramp, momentum=momentum, cap=one, plain=one)

    def at(self, value: np.ndarray) -> Progress:
        """The same, but at the objective ``value`` (B,)."""
        return replace(self, recent=np.concatenate([self.recent[:-1], value[None]]))

    def at_best(self) -> Progress:
        """The same, but at the best point so far, without a ramp."""
        return replace(self.on_ramp(np.ones(len(self.best))), recent=np.tile(self.best, (WINDOW + 1, 1)))

    @property
    def value(self) -> np.ndarray:
        """Objective of the working point."""
        return self.recent[-1]

    @property
    def ramping(self) -> np.ndarray:
        """Whether the penalties have not reached their full size yet."""
        return self.age < self.ramp

    @property
    def ease(self) -> np.ndarray:
        """Share of the penalties that counts in the next step."""
        return self.share ** np.maximum(1 - self.age / np.maximum(self.ramp, 1), 0)

    @property
    def next_momentum(self) -> np.ndarray:
        """How far the next step extrapolates."""
        return np.where(self.ramping, RAMP_MOMENTUM, np.where(self.plain > 0, 0.0, self.momentum))

    @property
    def pace(self) -> np.ndarray:
        """Decrease of the objective per step; infinite until WINDOW steps have followed the ramp."""
        measured = self.age >= self.ramp + WINDOW
        return np.where(measured, (self.recent[0] - self.value) / WINDOW, np.inf)

    @property
    def lost(self) -> np.ndarray:
        """Whether the run is at a worse point than the best one, and too slow to change that."""
        return (self.age >= self.ramp + 2 * WINDOW) & (self.value - OUTLOOK * self.pace > self.best)

    def followed_by(self, value: np.ndarray, accepted: np.ndarray) -> Progress:
        """The progress one step later: now at ``value``, the step ``accepted`` or not."""
        momentum, cap = self.momentum, self.cap
        grown = np.minimum(cap, MOMENTUM_GROWTH * momentum)
        larger = np.minimum(LARGEST_CAP, CAP_GROWTH * cap)
        used = (self.next_momentum > 0) & ~self.ramping
        return replace(
            self,
            age=self.age + 1,
            momentum=np.where(used, np.where(accepted, grown, momentum / MOMENTUM_SHRINKAGE), momentum),
            cap=np.where(used, np.where(accepted, larger, momentum), cap),
            plain=np.where(accepted, 0.0, 1.0),
            slow=np.where(
                accepted | used | self.ramping,
                self.slow / 2,
                np.minimum(2 * self.slow + FIRST_SLOWNESS, SLOWEST),
            ),
            recent=np.concatenate([self.recent[1:], value[None]]),
        )


@dataclass(frozen=True, eq=False)
class WorkingPoint:
    """The factors a step starts from, not always the best ones so far.

    Steps extrapolate from ``last_U`` and ``last_V``. ``kept`` (n, B) are the row weights of the robust fit
    at the factors; shape (0, B) for the plain fit.
    """

    U: Array
    V: Rows
    last_U: Array
    last_V: Rows
    kept: Rows
    progress: Progress

    @classmethod
    def unpacked(cls, arrays: tuple[Rows, ...]) -> WorkingPoint:
        """The point that was `packed`."""
        V, last_V, kept, U, last_U, progress = arrays
        return cls(U, V, last_U, last_V, kept, Progress.unpacked(progress))

    def packed(self) -> tuple[Rows, ...]:
        """All fields as arrays with the batch in axis 1, those that follow the samples first."""
        by_sample = (self.V, self.last_V, self.kept)
        return (*by_sample, self.U, self.last_U, self.progress.packed())

    @property
    def batch(self) -> int:
        """Number of settings B."""
        return self.U.shape[1]

    @property
    def value(self) -> np.ndarray:
        """Objective (B,)."""
        return self.progress.value

    def followed_by(self, new: WorkingPoint) -> tuple[WorkingPoint, np.ndarray]:
        """``new`` where its objective is no higher, or on the ramp; else this point; one step later.

        Also whether it is the new one, (B,).
        """
        accepted = (self.progress.ramping & np.isfinite(new.value)) | (new.value <= self.value)
        point = merge(accepted, new, self)
        return replace(point, progress=self.progress.followed_by(point.value, accepted)), accepted


def merge(which: np.ndarray, one: WorkingPoint, other: WorkingPoint) -> WorkingPoint:
    """Settings of ``one`` where ``which`` (B,), of ``other`` elsewhere."""
    if which.all() or not which.any():
        return one if which.all() else other
    return WorkingPoint.unpacked(
        tuple(chosen(which, *both) for both in zip(one.packed(), other.packed(), strict=True))
    )
