"""Samples much larger than all others, which would decide where a robust fit begins, and get own parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import Array, Matrix, like, namespace
from lognmf.core.blocks import Blocks
from lognmf.core.data import Data, InMemory, entry_rows, stored_like
from lognmf.core.matrices import is_csr_tensor
from lognmf.models.scale import row_squares

LARGE, SPREADS = 3.0, 3.0
"""A sample is large if its norm is more than the first number times the median, and its logarithm more than
the second number of spreads above the median. Norms with a heavy tail, as in counts, have a large spread."""

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
        """The data with large samples scaled to the median norm: a copy, or blocks that are read so."""
        if isinstance(self.whole, InMemory):
            return replace(self.whole, X=scaled_rows(self.whole.X, self.share))
        facts = self.whole.facts
        return replace(
            self.whole, read=self._read, facts=replace(facts, squares=facts.squares * self.share**2)
        )

    def _read(self, rows: slice) -> InMemory:
        block = self.whole.read(rows)
        return replace(block, X=scaled_rows(block.X, self.share[rows]))

    def down(self, V: Array) -> Array:
        """Codes (n, B, k) of the samples as those of the limited ones; stand-ins without rows stay."""
        return V * like(self.share, V)[:, None, None] if V.shape[0] else V

    def up(self, V: Array) -> Array:
        """Codes (n, B, k) of the limited samples as those of the samples."""
        return V / like(self.share, V)[:, None, None]


def limited(data: Data) -> Limited | None:
    """The data with large samples scaled down; None where no sample is large, or they are on workers."""
    if not isinstance(data, InMemory | Blocks) or data.weights:
        return None
    norms = np.sqrt(row_squares(data)[0])
    if not norms.any():
        return None
    median, upper = np.quantile(norms[norms > 0], [0.5, 0.75])
    large = norms > max(LARGE, (upper / median) ** (SPREADS / QUARTILE)) * median
    digits = float(namespace(data.pattern).finfo(data.pattern.dtype).eps)
    if not large.any() or digits * norms.max() > median:  # beside it the others would be but rounding
        return None
    share = np.ones(len(norms))
    share[large] = median / norms[large]
    return Limited(data, share)


def scaled_rows(X: Matrix, share: np.ndarray) -> Matrix:
    """A copy of ``X`` whose rows are multiplied by ``share`` (n,)."""
    if sp.issparse(X):
        return stored_like(X, X.data * share.astype(X.dtype)[entry_rows(X)])
    if is_csr_tensor(X):
        from lognmf.core.torch.sparse import csr_tensor
        from lognmf.core.torch.sparse import entry_rows as rows_of_entries

        values = X.values() * like(share, X.values())[rows_of_entries(X)]
        return csr_tensor(X.crow_indices(), X.col_indices(), values, X.shape)
    return X * like(share, X)[:, None]
