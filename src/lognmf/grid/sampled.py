"""Clusters of samples that are read in blocks: a random sample is clustered, and the others join them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lognmf.core.arrays import to_numpy
from lognmf.grid.vote import alike, vote
from lognmf.models.blocks import check_names, read_block, some_rows
from lognmf.models.validation import check_features, read_samples
from lognmf.sources import RowBlocks, WorkerBlocks, as_source
from lognmf.sources.rows import sample_size


def several_blocks(X: Any) -> RowBlocks | None:
    """``X`` where it is in more than one block of rows; None where it is not."""
    if isinstance(X, WorkerBlocks):
        msg = "NMFClustering takes no blocks on workers, because it reads them here: use in_blocks."
        raise TypeError(msg)
    source = as_source(X)
    return source if source is not None and len(source.edges) > 2 else None


def fit_sampled(clusterer: Any, source: RowBlocks) -> None:
    """Cluster random samples, then give all samples the clusters of their neighbours among these."""
    if not isinstance(clusterer._graph(clusterer._estimator()), str):
        msg = 'graph must be a word such as "knn" where X is read in blocks, of which a part is clustered.'
        raise ValueError(msg)
    count = sample_size(source.edges, source.shape[1], source.dtype)
    rng = check_random_state(clusterer.random_state)
    index = np.sort(rng.choice(source.shape[0], count, replace=False))
    clusterer.fit_samples(read_samples(some_rows(clusterer, source, index), estimator=clusterer))
    check_names(clusterer, source, reset=True)
    labels, codes = [], []
    for rows in source.places:
        X = read_block(source, rows)
        labels.append(vote(alike(X, clusterer._known[0]), *clusterer._known))
        codes.append(to_numpy(clusterer.model_.transform(X)))
    clusterer.sample_, clusterer.labels_ = index, np.concatenate(labels)
    clusterer.embedding_ = np.concatenate(codes)


def check_blocks(clusterer: Any, source: RowBlocks) -> None:
    """Refuse samples in blocks whose features are not those of the fit."""
    check_features(clusterer, source, reset=False)
    check_names(clusterer, source, reset=False)


def predict_blocks(clusterer: Any, source: RowBlocks) -> np.ndarray:
    """Clusters of samples that are read in blocks."""
    check_blocks(clusterer, source)
    return np.concatenate([clusterer.predict(read_block(source, rows)) for rows in source.places])
