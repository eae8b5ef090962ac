"""Codes of samples, by the model of a clusterer."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from lognmf.core.arrays import Array
from lognmf.grid.sampled import check_blocks, several_blocks
from lognmf.models.validation import check_samples, read_samples


class Encodes(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """A clusterer with ``components_`` and the fitted ``model_`` that has them."""

    components_: Any
    model_: Any

    def transform(self, X: Any) -> Array:
        """Compute the codes of samples, as ``model_.transform`` does.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or torch tensor of shape (m, p)
            Samples in rows.

        Returns
        -------
        V : array of shape (m, k)
            One row of codes per sample; those of the training samples may differ from ``embedding_``.

        Raises
        ------
        ValueError, TypeError
            If X cannot be used.
        """
        check_is_fitted(self)
        if (source := several_blocks(X)) is not None:
            check_blocks(self, source)
            return self.model_.transform(source)
        samples = read_samples(X, estimator=self)
        check_samples(self, samples, reset=False)
        return self.model_.transform(samples)

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
