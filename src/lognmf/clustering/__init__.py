"""From codes to clusters."""

from lognmf.clustering.labels import cluster

__all__ = ["cluster"]
