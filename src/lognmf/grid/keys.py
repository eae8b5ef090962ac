"""Names of rows, and of what they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.arrays import is_torch
from lognmf.core.data import InMemory
from lognmf.models.identity import key_of, plain


def describe(
    estimator: Any,
    data: InMemory,
    names: Sequence[str],
    n_clusters: int | None,
    classes: np.ndarray | None,
    graph: sp.csr_array | None,
) -> dict[str, Any]:
    """What rows of a store belong to."""
    apart = (*names, "random_state", "verbose")
    return {
        "format": 4,
        "model": type(estimator).__name__,
        "parameters": plain({n: v for n, v in estimator.get_params().items() if n not in apart}),
        "grid": list(names),
        "data": plain(data.X),
        "mask": plain(data.M),
        "library": "torch" if is_torch(data.X) else "numpy",
        "dtype": str(data.X.dtype),
        "n_clusters": n_clusters,
        "classes": plain(classes),
        "graph": plain(graph),
    }


def row_key(setting: Mapping[str, Any], seed: int) -> str:
    """The name of a row in a store."""
    return key_of([setting, seed])
