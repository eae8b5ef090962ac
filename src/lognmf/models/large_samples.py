"""Samples much larger than all others, which would decide where a robust fit begins, and get own parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lognmf.core.arrays import Array, like, namespace
from lognmf.core.data import Data
from lognmf.core.rows import Rows, each

LARGE, SPREADS = 3.0, 3.0
"""A sample is large if its norm is more than the first number times the median, and its logarithm more than
the second number of spreads above the median. Norms with a heavy tail, as in counts, have a large spread."""

SMALL = 0.1
"""The norm of large samples where a fit begins, as a share of the median. At the median itself, many of them,
or one among few samples, still get parts of their own (``benchmarks/large_samples.py``)."""

QUARTILE = 0.6745
"""The upper quartile of normally distributed numbers, in spreads above the median."""


@dataclass(frozen=True, eq=False)
class Limited:
    """Data and the ``share`` (n,) of its norm that every sample keeps: 1, or less for large ones."""

    whole: Any
    share: np.ndarray

    @property
    def consequence(self) -> str:
        """What becomes of the large samples, as the rest of a sentence and another one."""
        large = np.flatnonzero(self.share < 1)
        if len(large) == 1:
            return f". Sample {large[0]}, the only large one, is scaled down where the fit begins"
        return (
            f". {len(large)} large samples are scaled down where the fit begins; those that are alike may "
            "still get a part of their own"
        )

    @property
    def data(self) -> Any:
        """The data with large samples scaled down to a small norm: a copy, or blocks that are read so."""
        return self.whole.scaled_rows(self.share)

    def down(self, V: Rows) -> Rows:
        """Codes (n, B, k) of the samples as those of the limited ones."""
        return each(_times_share, V, self.share)

    def up(self, V: Rows) -> Rows:
        """Codes (n, B, k) of the limited samples as those of the samples."""
        return each(_over_share, V, self.share)


def _times_share(V: Array, share: np.ndarray) -> Array:
    return V * like(share, V)[:, None, None]


def _over_share(V: Array, share: np.ndarray) -> Array:
    return V / like(share, V)[:, None, None]


def limited(data: Data) -> Limited | None:
    """The data with large samples scaled down; None where no sample is large."""
    if data.weights:
        return None
    norms = np.sqrt(data.facts.squares)
    if not norms.any():
        return None
    median, upper = np.quantile(norms[norms > 0], [0.5, 0.75])
    large = norms > max(LARGE, (upper / median) ** (SPREADS / QUARTILE)) * median
    digits = float(namespace(data.pattern).finfo(data.pattern.dtype).eps)
    if not large.any() or digits * norms.max() > median:  # beside it the others would be but rounding
        return None
    share = np.ones(len(norms))
    share[large] = SMALL * median / norms[large]
    return Limited(data, share)
