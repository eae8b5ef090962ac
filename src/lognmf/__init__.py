"""lognmf: sparse, graph-regularised, robust nonnegative matrix factorisation.

LS-NMF and RLS-NMF of Peng et al. and their seven baselines as scikit-learn estimators, on NumPy, SciPy sparse
matrices and torch tensors. Names are loaded when first used, so the import is light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lognmf import datasets, metrics, noise
    from lognmf.graph import knn_graph
    from lognmf.grid.fit import fit_grid
    from lognmf.grid.select import select
    from lognmf.grid.tune import tune
    from lognmf.models import (
        MODELS,
        ConvexNMF,
        GraphNMF,
        LogSparseNMF,
        OrthogonalNMF,
        PlainNMF,
        RobustLogSparseNMF,
        RobustManifoldNMF,
        SemiNMF,
        WeightedNMF,
    )
    from lognmf.norms import l2_log_norm, l21_norm, log_norm, shrink_l2_log, shrink_l21
    from lognmf.persistence import load, save

    __version__: str

__all__ = [
    "MODELS",
    "ConvexNMF",
    "GraphNMF",
    "LogSparseNMF",
    "OrthogonalNMF",
    "PlainNMF",
    "RobustLogSparseNMF",
    "RobustManifoldNMF",
    "SemiNMF",
    "WeightedNMF",
    "__version__",
    "datasets",
    "fit_grid",
    "knn_graph",
    "l2_log_norm",
    "l21_norm",
    "load",
    "log_norm",
    "metrics",
    "noise",
    "save",
    "select",
    "shrink_l2_log",
    "shrink_l21",
    "tune",
]

_HOME = {
    "MODELS": "models",
    "ConvexNMF": "models",
    "GraphNMF": "models",
    "LogSparseNMF": "models",
    "OrthogonalNMF": "models",
    "PlainNMF": "models",
    "RobustLogSparseNMF": "models",
    "RobustManifoldNMF": "models",
    "SemiNMF": "models",
    "WeightedNMF": "models",
    "knn_graph": "graph",
    "l2_log_norm": "norms",
    "l21_norm": "norms",
    "log_norm": "norms",
    "shrink_l2_log": "norms",
    "shrink_l21": "norms",
    "fit_grid": "grid.fit",
    "select": "grid.select",
    "tune": "grid.tune",
    "load": "persistence",
    "save": "persistence",
}
"""The module each public name lives in."""

_MODULES = ("datasets", "metrics", "noise")
"""Modules that are public names themselves."""


def __getattr__(name: str) -> Any:
    """Load a public name on first use (scikit-learn alone pulls in pandas where it is installed)."""
    if name in _HOME:
        value = getattr(import_module(f"lognmf.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"lognmf.{name}")
    elif name == "__version__":
        value = import_module("importlib.metadata").version("lognmf")
    else:
        msg = f"module 'lognmf' has no attribute {name!r}"
        raise AttributeError(msg)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
