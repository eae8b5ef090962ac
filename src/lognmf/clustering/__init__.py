"""Clusters from codes: k-means, and scores of clusterings."""

from lognmf.clustering.kmeans import cluster

__all__ = ["cluster"]
