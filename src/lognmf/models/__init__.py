"""The models, by the paper's names in the paper's column order."""

from lognmf.models.log_sparse import LogSparseNMF
from lognmf.models.robust_log_sparse import RobustLogSparseNMF

MODELS = {
    "LS-NMF": LogSparseNMF,
    "RLS-NMF": RobustLogSparseNMF,
}

__all__ = ["MODELS", "LogSparseNMF", "RobustLogSparseNMF"]
