"""What a person reads of a fitted model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lognmf.core.arrays import to_numpy
from lognmf.parameters import check_integer


class Readable:
    """A fitted model with ``components_``, and ``feature_names_in_`` if its features have names."""

    components_: Any

    def top_features(self, n: int = 10) -> list[list[str]]:
        """Name the features of the largest weight in every part.

        Parameters
        ----------
        n : int, default=10
            Maximum number of features per part; features of weight 0 are left out.

        Returns
        -------
        list of lists of str
            One list per part, largest weight first. Without names of features, their numbers.
        """
        check_is_fitted(self)
        check_integer("n", n, 1)
        return largest_features(to_numpy(self.components_), getattr(self, "feature_names_in_", None), n)


def largest_features(parts: np.ndarray, names: Sequence[Any] | None, n: int) -> list[list[str]]:
    """Names, or numbers, of the at most n features of the largest weight in each part (k, p)."""
    words = [str(j) for j in range(parts.shape[1])] if names is None else [str(name) for name in names]
    order = np.argsort(-abs(parts), axis=1, kind="stable")[:, :n]
    return [[words[j] for j in top if part[j]] for part, top in zip(parts, order, strict=True)]
