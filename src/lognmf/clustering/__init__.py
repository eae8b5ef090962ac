"""Clusters of samples: k-means, spectral clustering, and scores of clusterings."""

from lognmf.clustering.kmeans import cluster, main_parts, numbered_by_parts
from lognmf.clustering.spectral import spectral_clustering, spectral_clusters

__all__ = ["cluster", "main_parts", "numbered_by_parts", "spectral_clustering", "spectral_clusters"]
