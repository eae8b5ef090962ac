"""Models taken apart and put together again, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lognmf.graph import check_graph
from lognmf.models import MODELS
from lognmf.models.base import FactorModel
from lognmf.persistence.packing import pack, unpack


def model_apart(model: FactorModel, arrays: dict[str, np.ndarray], prefix: str = "") -> dict[str, Any]:
    """A model as JSON; arrays go into ``arrays``, under names that begin with ``prefix``."""
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    return {
        "class": type(model).__name__,
        "params": pack(f"{prefix}param", model.get_params(deep=False), arrays)["items"],
        "fitted": pack(f"{prefix}fitted", fitted, arrays)["items"],
    }


def model_together(
    cls: type[FactorModel], text: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str = ""
) -> Any:
    """The model that `model_apart` took apart; refused if it is none that a fit could have made."""
    model = built(cls, unpacked(f"{prefix}param", text["params"], arrays))
    fitted = unpacked(f"{prefix}fitted", text["fitted"], arrays)
    known = {name for base in cls.__mro__ for name in getattr(base, "__annotations__", ())}
    own = cls not in MODELS.values()
    for name, value in fitted.items():
        free = name.isidentifier() and name.endswith("_") and not (name.startswith("_") or hasattr(cls, name))
        if not free or not (own or name in known):
            msg = f"{name!r} is no fitted attribute of {cls.__name__}"
            raise ValueError(msg)
        setattr(model, name, value)
    _check_fitted(model)
    return model


def unpacked(key: str, items: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The values of a dictionary that was packed under ``key``."""
    return {name: unpack(f"{key}:{name}", value, arrays) for name, value in items.items()}


def built(cls: Any, params: Mapping[str, Any]) -> Any:
    """An estimator that is not fitted; refused unless it has all parameters, and good ones."""
    expected = set(cls._get_param_names())
    if params.keys() != expected:
        msg = f"the parameters {sorted(params.keys() ^ expected)} are missing or unknown"
        raise ValueError(msg)
    estimator = cls(**params)
    estimator.check_parameters()
    return estimator


def _check_fitted(model: Any) -> None:
    """Refuse fitted attributes that are missing, of a wrong kind, or contradict each other."""
    (k, p), (n, _) = model.components_.shape, model.embedding_.shape
    lowest = -np.inf if model.spec.signed else 0.0
    check_array("components_", model.components_, (k, p), lowest)
    check_array("embedding_", model.embedding_, (n, k), lowest)
    shapes = dict.fromkeys(("labels_", "outlier_share_", "outlier_norm_", "residual_norm_"), (n,))
    for name, shape in (shapes | {"combination_": (n, k)}).items():
        if hasattr(model, name):
            check_array(name, getattr(model, name), shape, 0.0)
    if hasattr(model, "is_outlier_"):
        check_array("is_outlier_", np.asarray(model.is_outlier_, dtype=np.uint8), (n,), 0.0)
    evaluations = len(model.history_["objective"])
    for name, column in model.history_.items():
        check_array(f"history_[{name!r}]", column, (evaluations,), -np.inf)
    names = getattr(model, "feature_names_in_", None)
    checks = {
        "n_features_in_": type(model.n_features_in_) is int and model.n_features_in_ == p,
        "feature_names_in_": names is None or (names.shape == (p,) and names.dtype == object),
        "n_iter_": type(model.n_iter_) is int and model.n_iter_ >= 0,
        "objective_": type(model.objective_) is float and np.isfinite(model.objective_),
        "reconstruction_err_": type(model.reconstruction_err_) is float and model.reconstruction_err_ >= 0,
        "stop_reason_": type(model.stop_reason_) is str,
    }
    used = [f"{name}_" for name in (*model.spec.auto, *(["scale"] if "scale" in model.get_params() else []))]
    checks |= {name: type(value := getattr(model, name)) is float and 0 <= value < np.inf for name in used}
    wrong = [name for name, right in checks.items() if not right]
    if wrong:
        msg = f"{wrong[0]} is not what a fit sets: got {getattr(model, wrong[0])!r}"
        raise ValueError(msg)
    if getattr(model, "graph_", None) is not None:
        check_graph(model.graph_, n)


def check_array(name: str, array: Any, shape: tuple[int, ...], lowest: float) -> None:
    """Refuse what is no array of finite numbers of this shape, all at least ``lowest``."""
    numbers = isinstance(array, np.ndarray) and array.dtype.kind in "fiu" and array.shape == shape
    if not numbers or not (np.isfinite(array).all() and (array >= lowest).all()):
        kind = "finite" if lowest < 0 else "finite nonnegative"
        msg = f"{name} must be an array of shape {shape} of {kind} numbers"
        raise ValueError(msg)
