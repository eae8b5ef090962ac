"""Clusters from codes: k-means, and scores of clusterings."""

from lognmf.clustering.kmeans import cluster
from lognmf.clustering.numbering import main_parts, numbered_by_parts
from lognmf.clustering.spectral import spectral_clustering

__all__ = ["cluster", "main_parts", "numbered_by_parts", "spectral_clustering"]
