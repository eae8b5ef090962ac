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

    def top_features(self, n: int = 10, names: Sequence[str] | None = None) -> list[list[str]]:
        """Name the features of the largest weight in every part.

        Parameters
        ----------
        n : int, default=10
            Maximum number of features per part; features of weight 0 are left out.
        names : sequence of str, optional
            Names of the p features, such as ``vectorizer.get_feature_names_out()``. Default: those of the
            data frame or AnnData object that the model was fitted to.

        Returns
        -------
        list of lists of str
            One list per part, largest weight first. Without names of features, their numbers.

        Raises
        ------
        ValueError
            If there are more or fewer names than features.
        """
        check_is_fitted(self)
        check_integer("n", n, 1)
        parts = to_numpy(self.components_)
        if names is None:
            names = getattr(self, "feature_names_in_", None)
        elif len(names) != parts.shape[1]:
            msg = f"names must hold a name for each of the {parts.shape[1]} features; got {len(names)}."
            raise ValueError(msg)
        return largest_features(parts, names, n)


def largest_features(parts: np.ndarray, names: Sequence[Any] | None, n: int) -> list[list[str]]:
    """Names, or numbers, of the at most n features of the largest weight in each part (k, p)."""
    words = [str(j) for j in range(parts.shape[1])] if names is None else [str(name) for name in names]
    order = np.argsort(-abs(parts), axis=1, kind="stable")[:, :n]
    return [[words[j] for j in top if part[j]] for part, top in zip(parts, order, strict=True)]
