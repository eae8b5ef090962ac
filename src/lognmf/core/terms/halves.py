"""The halves of the data fits as data: their formula, and what a fused kernel needs to know of it.

Halves may be any function of rows. Those that are frozen values, here and beside `Log`, `L1` and
`Laplacian`, can also be read: on a GPU a whole update is then one pass over memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from lognmf.core.arrays import Array, blend, mix


@dataclass(frozen=True, eq=False)
class FitHalves:
    """``pos = F P`` and ``neg`` one of three, for a factor F (rows, B, k).

    ``A`` without ``taken``; ``A + F taken``; or row by row, with ``kept`` (rows, B),
    ``kept · A + (1 − kept) · F taken``. A is (rows, B, k), P and ``taken`` are (B, k, k).
    """

    F: Array
    A: Array
    P: Array
    taken: Array | None = None
    kept: Array | None = None

    def __call__(self, rows: slice) -> tuple[Array, Array]:
        F, A = self.F[rows, ...], self.A[rows, ...]
        pos = mix(F, self.P)
        if self.taken is None:
            return A, pos
        neg = mix(F, self.taken)
        if self.kept is not None:
            return blend(neg, A, self.kept[rows, :]), pos
        neg += A
        return neg, pos
