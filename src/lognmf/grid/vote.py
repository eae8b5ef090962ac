"""Clusters of new samples, by their nearest neighbours among known ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.core.matrices import on_cpu
from lognmf.graph.neighbours import nearest

VOTERS = 3
"""Neighbours that decide on the cluster of a new sample: with five, classes of few samples lose theirs."""


def vote(new: Any, known: Any, labels: np.ndarray) -> np.ndarray:
    """Labels (m,) of new samples by those (n,) of the nearest known samples; an equal one decides alone."""
    voters, squared = nearest(new, known, min(VOTERS, known.shape[0]))
    equal = squared[:, :1] == 0
    weight = np.where(equal, squared == 0, 1 / np.sqrt(np.where(equal, 1, squared)))
    votes = np.zeros((len(voters), labels.max() + 1))
    np.add.at(votes, (np.arange(len(voters))[:, None], labels[voters]), weight)
    return votes.argmax(axis=1)


def alike(X: Any, known: Any) -> Any:
    """``X`` in the form of the training samples, so that equal samples are equal."""
    X = on_cpu(X)
    if sp.issparse(known):
        return sp.csr_array(X, dtype=known.dtype)
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=known.dtype)
