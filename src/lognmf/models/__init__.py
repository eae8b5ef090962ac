"""The models, by the paper's names in the paper's column order."""

from typing import Any

from lognmf.models.convex import ConvexNMF
from lognmf.models.graph_regularised import GraphNMF
from lognmf.models.log_sparse import LogSparseNMF
from lognmf.models.orthogonal import OrthogonalNMF
from lognmf.models.plain import PlainNMF
from lognmf.models.robust_log_sparse import RobustLogSparseNMF
from lognmf.models.robust_manifold import RobustManifoldNMF
from lognmf.models.semi import SemiNMF
from lognmf.models.weighted import WeightedNMF

MODELS: dict[str, type[Any]] = {
    "NMF": PlainNMF,
    "GNMF": GraphNMF,
    "RMNMF": RobustManifoldNMF,
    "WNMF": WeightedNMF,
    "CNMF": ConvexNMF,
    "ONMF": OrthogonalNMF,
    "Semi-NMF": SemiNMF,
    "LS-NMF": LogSparseNMF,
    "RLS-NMF": RobustLogSparseNMF,
}

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
]
