"""The unit of the data: what makes the weights of a model independent of the scale of X."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lognmf.core.arrays import like, to_numpy
from lognmf.core.data import Data, InMemory
from lognmf.parameters import check_positive

SAME = 1e-12
"""A unit this close to 1 is 1: samples of unit norm are fitted as they are."""

FEW, MOST = 0.1, 0.5
"""Norms differ by much where this share of the samples has more than that share of all squares."""

DECIDE = ", so the fit describes mostly these"
"""What becomes of such samples, where nothing is done about them."""


def check_scale(scale: Any) -> None:
    """Refuse what is neither "auto" nor a unit."""
    if not isinstance(scale, str):
        check_positive("scale", scale)
    elif scale != "auto":
        msg = f'scale must be "auto" or a finite number > 0; got {scale!r}.'
        raise ValueError(msg)


def unit_of(data: Data, share: np.ndarray | None = None) -> float:
    """Root mean square of the samples' norms; missing entries count as an average known one.

    ``share`` (n,) of its norm is what counts of each sample.
    """
    n = data.shape[0]
    facts = data.facts
    squares = facts.squares if share is None else facts.squares * share**2
    unit = facts.size * math.sqrt(squares.sum() / n / facts.known)
    return 1.0 if unit == 0 or abs(unit - 1) < SAME else unit


def uneven_norms(data: Data, so: str = "") -> str | None:
    """Sentences where a few samples decide a fit of squares; None if the norms are alike."""
    advice = "lognmf.normalize(X) gives every sample the same norm."
    return _uneven(data.facts.squares, ("norms", "the sum of squares of X"), so or DECIDE, advice)


def uneven_sums(data: InMemory) -> str | None:
    """Sentences where a few samples decide a fit of counts; None if the sums are alike."""
    sums = to_numpy(data.times(like(np.ones((data.shape[1], 1, 1)), data.pattern)))[:, 0, 0]
    advice = "X / X.sum(axis=1, keepdims=True) gives every sample the same sum."
    return _uneven(sums.astype(float), ("sums", "the sum of X"), DECIDE, advice)


def _uneven(amounts: np.ndarray, words: tuple[str, str], so: str, advice: str) -> str | None:
    few, shares = math.ceil(FEW * len(amounts)), amounts / (amounts.sum() or 1.0)
    order = np.argsort(shares)[::-1]
    first, share = shares[order[0]], shares[order[:few]].sum()
    if few < 2 or share <= MOST:
        return None
    alone = f", and sample {order[0]} has {first:.0%}" if first > share / 2 else ""
    return (
        f"The {words[0]} of the samples differ by much: {few} of {len(amounts)} samples have {share:.0%} of "
        f"{words[1]}{alone}{so}. {advice}"
    )
