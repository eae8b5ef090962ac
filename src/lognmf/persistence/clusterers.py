"""Clusterers taken apart and put together again, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.clusterer import NMFClustering
from lognmf.models.base import FactorModel
from lognmf.persistence.models import built, check_array, model_apart, model_together, unpacked
from lognmf.persistence.packing import pack, unpack

_NAMES = {"feature_names_in_", "feature_labels_"}
_SAVED = {"labels_", "embedding_", "n_clusters_", "rows_", "sample_", "n_features_in_"}


def clusterer_apart(clusterer: NMFClustering, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """A clusterer as JSON, with its model and the samples that vote in `predict`."""
    params = clusterer.get_params(deep=False)
    estimator = params.pop("model")
    if not isinstance(estimator, str):
        options = pack("estimator", estimator.get_params(deep=False), arrays)["items"]
        estimator = {"class": type(estimator).__name__, "params": options}
    names = [name for name in (*sorted(_SAVED), *_NAMES) if hasattr(clusterer, name)]
    fitted = {name: getattr(clusterer, name) for name in names} | {"rows_": tuple(clusterer.rows_)}
    return {
        "class": type(clusterer).__name__,
        "estimator": estimator,
        "params": pack("param", params, arrays)["items"],
        "fitted": pack("fitted", fitted, arrays)["items"],
        "known": pack("known", clusterer._known, arrays),
        "model": model_apart(clusterer.model_, arrays, "model:"),
    }


def clusterer_together(
    text: Mapping[str, Any], arrays: Mapping[str, np.ndarray], allowed: Mapping[str, Any]
) -> NMFClustering:
    """The clusterer that `clusterer_apart` took apart; refused if it is none that a fit could have made."""
    estimator, model = text["estimator"], text["model"]
    if isinstance(estimator, dict):
        options = unpacked("estimator", estimator["params"], arrays)
        estimator = built(_model_class(estimator["class"], allowed), options)
    params = unpacked("param", text["params"], arrays)
    clusterer = built(NMFClustering, params | {"model": estimator})
    clusterer._estimator().check_parameters()
    fitted = unpacked("fitted", text["fitted"], arrays)
    if fitted.keys() - _NAMES != _SAVED:
        msg = f"the attributes {sorted(fitted.keys() ^ _SAVED)} are missing or unknown"
        raise ValueError(msg)
    for name, value in fitted.items():
        setattr(clusterer, name, value)
    clusterer.rows_ = list(clusterer.rows_)
    clusterer.model_ = model_together(_model_class(model["class"], allowed), model, arrays, "model:")
    clusterer.components_ = clusterer.model_.components_
    clusterer.number_ = None  # what spoke for the number is not saved
    clusterer._known = unpack("known", text["known"], arrays)
    _check_fitted(clusterer)
    return clusterer


def _model_class(name: str, allowed: Mapping[str, Any]) -> Any:
    """A class of models by its name; refused unless it may be loaded."""
    cls = allowed.get(name)
    if not (isinstance(cls, type) and issubclass(cls, FactorModel)):
        msg = f"its model is a {name}, so pass that class: load_model(path, classes=[{name}])"
        raise ValueError(msg)
    return cls


def _check_fitted(clusterer: Any) -> None:
    """Refuse attributes that are of a wrong kind, or contradict each other or the model."""
    (k, p), m, n = clusterer.components_.shape, len(clusterer.model_.embedding_), len(clusterer.labels_)
    lowest = -np.inf if clusterer.model_.spec.signed else 0.0
    _check_numbers("labels_", clusterer.labels_, n, k)
    check_array("embedding_", clusterer.embedding_, (n, k), lowest)
    if clusterer.sample_ is not None:
        _check_numbers("sample_", clusterer.sample_, m, n)
    X, labels = clusterer._known
    _check_numbers("labels of the known samples", labels, X.shape[0], k)
    check_array(
        "known samples", X.data if sp.issparse(X) else X, X.data.shape if sp.issparse(X) else X.shape, lowest
    )
    names = getattr(clusterer, "feature_names_in_", None)
    checks = {
        "n_clusters_": type(clusterer.n_clusters_) is int and clusterer.n_clusters_ == k,
        "n_features_in_": type(clusterer.n_features_in_) is int and clusterer.n_features_in_ == p,
        "feature_names_in_": names is None or (names.shape == (p,) and names.dtype == object),
        "sample_": clusterer.sample_ is not None or m == n,
        "rows_": all(isinstance(row, dict) for row in clusterer.rows_),
        "known samples": X.ndim == 2 and X.shape[0] > 0 and X.shape[1] == p and X.dtype.kind == "f",
    }
    if wrong := [name for name, right in checks.items() if not right]:
        msg = f"{wrong[0]} is not what a fit sets"
        raise ValueError(msg)


def _check_numbers(name: str, array: Any, count: int, limit: int) -> None:
    """Refuse what are not ``count`` whole numbers from 0 to ``limit``, which is excluded."""
    check_array(name, array, (count,), 0.0)
    if array.dtype.kind not in "iu" or (count and array.max() >= limit):
        msg = f"{name} must be whole numbers below {limit}"
        raise ValueError(msg)
