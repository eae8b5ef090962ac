"""Where coordinate descent stands between two steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

Arrays: TypeAlias = tuple[np.ndarray, ...]

WINDOW = 5
"""Steps over which the pace is measured, since a single step may have been taken back."""

AGE, RAMP, SHARE, MOMENTUM, CAP, PLAIN, ZERO, BEST, REVIVED, EXCHANGED = range(10)
"""Rows of `Path.numbers`: steps since the ramp began; its length; the share of the penalties it begins
with; momentum, its cap, whether the next step does without; objectives of the zero factorisation,
of the best point so far, and of the best point at the last escape; exchanges since one helped."""

RECENT = slice(10, 11 + WINDOW)
"""The rows after them: the last objectives, the newest at the end."""

RAMP_STEPS = 4
"""Steps of the ramp for each power of ten."""

RAMP_MOMENTUM, FIRST_MOMENTUM = 0.3, 0.5
GROWTH, CAP_GROWTH, SHRINKAGE, LARGEST = 1.05, 1.01, 1.5, 0.9999
"""How the momentum and its cap follow success and failure (Ang and Gillis 2019)."""


@dataclass(frozen=True, eq=False)
class Path:
    """The factors a step works on; not always the best ones so far.

    Parameters
    ----------
    U, V, XU : ndarrays of shape (p, B, k), (n, B, k), (n, B, k)
        The factors and ``X @ U``.
    last_U, last_V : ndarrays
        What to extrapolate from.
    kept : ndarray of shape (n, B)
        Row weights at the factors; (0, B) for the plain fit.
    numbers : ndarray of shape (RECENT.stop, B)
        In float64.
    """

    U: np.ndarray
    V: np.ndarray
    XU: np.ndarray
    last_U: np.ndarray
    last_V: np.ndarray
    kept: np.ndarray
    numbers: np.ndarray

    @property
    def arrays(self) -> Arrays:
        """Everything, in order; each has the batch in its axis 1."""
        return (self.U, self.V, self.XU, self.last_U, self.last_V, self.kept, self.numbers)

    @property
    def batch(self) -> int:
        """Number of settings B."""
        return self.V.shape[1]

    @property
    def value(self) -> np.ndarray:
        """Objective (B,)."""
        return self.numbers[RECENT][-1]

    @property
    def ramping(self) -> np.ndarray:
        """Whether the penalties have not reached their full size yet, (B,)."""
        return self.numbers[AGE] < self.numbers[RAMP]

    @property
    def ease(self) -> np.ndarray:
        """The share of the penalties that counts in the next step, (B,)."""
        left = np.maximum(1 - self.numbers[AGE] / np.maximum(self.numbers[RAMP], 1), 0)
        return self.numbers[SHARE] ** left

    @property
    def momentum(self) -> np.ndarray:
        """How far the next step extrapolates, (B,)."""
        own = np.where(self.numbers[PLAIN] > 0, 0.0, self.numbers[MOMENTUM])
        return np.where(self.ramping, RAMP_MOMENTUM, own)

    @property
    def pace(self) -> np.ndarray:
        """Fall of the objective per step; infinite while that is not known, (B,)."""
        known = self.numbers[AGE] >= self.numbers[RAMP] + WINDOW
        fall = self.numbers[RECENT][0] - self.value
        return np.where(known, fall / WINDOW, np.inf)

    def followed_by(self, new: Path) -> Path:
        """``new`` where its objective is no higher or the ramp makes the way, else this; one step older."""
        accepted = (self.ramping & np.isfinite(new.value)) | (new.value <= self.value)
        momentum, cap = self.numbers[MOMENTUM], self.numbers[CAP]
        used = (self.momentum > 0) & ~self.ramping
        path = merge(accepted, new, self)
        numbers = self.numbers.copy()
        numbers[AGE] += 1
        numbers[MOMENTUM] = np.where(
            used, np.where(accepted, np.minimum(cap, GROWTH * momentum), momentum / SHRINKAGE), momentum
        )
        numbers[CAP] = np.where(
            used, np.where(accepted, np.minimum(LARGEST, CAP_GROWTH * cap), momentum), cap
        )
        numbers[PLAIN] = ~accepted
        numbers[RECENT] = np.concatenate([self.numbers[RECENT][1:], path.value[None]])
        return replace(path, numbers=numbers)


def first_numbers(value: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """The numbers of a path that begins at ``value``; ``zero`` is that of the zero factorisation."""
    numbers = np.zeros((RECENT.stop, len(value)))
    numbers[RECENT] = value
    numbers[ZERO], numbers[BEST], numbers[REVIVED] = zero, value, np.inf
    return on_a_ramp(numbers, np.ones(len(value)))


def on_a_ramp(numbers: np.ndarray, share: np.ndarray) -> np.ndarray:
    """``numbers`` at the beginning of a ramp from ``share`` (B,) of the penalties; 1 for none."""
    numbers = numbers.copy()
    numbers[AGE], numbers[SHARE], numbers[RAMP] = 0, share, np.ceil(-RAMP_STEPS * np.log10(share))
    numbers[MOMENTUM], numbers[CAP], numbers[PLAIN] = FIRST_MOMENTUM, 1.0, 1.0
    return numbers


def choose(which: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Settings of ``one`` where ``which`` (B,), of ``other`` elsewhere."""
    return np.where(which.reshape(1, -1, *[1] * (one.ndim - 2)), one, other)


def chosen(which: np.ndarray, ones: Arrays, others: Arrays) -> Arrays:
    """`choose` for several arrays; no copies if all settings are alike."""
    if which.all():
        return ones
    if not which.any():
        return others
    return tuple(choose(which, one, other) for one, other in zip(ones, others, strict=True))


def merge(which: np.ndarray, one: Path, other: Path) -> Path:
    """Settings of ``one`` where ``which`` (B,), of ``other`` elsewhere."""
    return Path(*chosen(which, one.arrays, other.arrays))
