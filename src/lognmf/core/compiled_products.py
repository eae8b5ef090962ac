"""The loop of sparse products, compiled by numba."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from lognmf.core.compiling import compiled


@compiled
def add_product(data, indices, indptr, F, out, low, high):
    """``out += M @ F`` in the rows from low to high, entry by entry in the order in which M stores them.

    An index without a sign cannot count from the end, which saves a test for each.
    """
    columns = F.shape[1]
    if columns == 1:
        for i in range(low, high):
            total = out[i, 0]
            for e in range(indptr[i], indptr[i + 1]):
                total += data[e] * F[np.uint64(indices[e]), 0]
            out[i, 0] = total
        return
    for i in range(low, high):
        e, end, own = np.int64(indptr[i]), np.int64(indptr[i + 1]), out[i]
        while e + 4 <= end:  # four at a time: the row of ``out`` is read and written once for them
            x0, x1, x2, x3 = data[e], data[e + 1], data[e + 2], data[e + 3]
            f0, f1 = F[np.uint64(indices[e])], F[np.uint64(indices[e + 1])]
            f2, f3 = F[np.uint64(indices[e + 2])], F[np.uint64(indices[e + 3])]
            for c in range(columns):
                own[c] = (((own[c] + x0 * f0[c]) + x1 * f1[c]) + x2 * f2[c]) + x3 * f3[c]
            e += 4
        while e < end:
            x, f = data[e], F[np.uint64(indices[e])]
            for c in range(columns):
                own[c] += x * f[c]
            e += 1
