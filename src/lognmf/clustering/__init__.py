"""Clusters from codes: k-means, and scores of clusterings."""

from lognmf.clustering.kmeans import cluster
from lognmf.clustering.spectral import spectral_clustering

__all__ = ["cluster", "spectral_clustering"]
