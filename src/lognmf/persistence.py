"""Fitted models and clusterers in a file, without pickle: an ``.npz`` of plain arrays and one JSON text."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lognmf.clusterer import NMFClustering
from lognmf.core.arrays import is_torch, to_numpy
from lognmf.files import new_file
from lognmf.graph import check_graph
from lognmf.models import MODELS
from lognmf.models.base import FactorModel
from lognmf.parameters import check_sparse
from lognmf.reading import LimitError, check_npz, reason, usual_bytes

_FORMAT = 3
_CSR_PARTS = ("data", "indices", "indptr", "shape")

_NOT_SAVED = {NMFClustering: {"components_", "number_"}}
"""Fitted attributes that are those of the model within, or that only the fit itself can tell."""


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model or clusterer to a file.

    The file appears under its name only when it is complete. Torch tensors are written as NumPy arrays. The
    file of a clusterer also holds its training samples, which `predict` needs. That of RLS-NMF with
    ``gamma="auto"`` holds up to 1,000 of them, ``reference_samples_``, by which new samples are judged: think
    of this before you pass on a model of personal data.

    Parameters
    ----------
    model : fitted estimator
        A model of this package, or of your own class that extends one, or `NMFClustering`.
    path : path
        ``.npz`` is added if it is missing. An existing file is replaced.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    TypeError, ValueError, FileNotFoundError
        If ``model`` is no model of this package, its attributes were changed so that they contradict each
        other, or the folder does not exist.

    See Also
    --------
    load_model : Reads it back.

    Examples
    --------
    >>> import tempfile
    >>> from lognmf import PlainNMF, load_model, save_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_model(PlainNMF(1, random_state=0).fit([[1.0, 2.0], [2.0, 4.0]]), f"{folder}/model")
    ...     load_model(path)
    PlainNMF(n_components=1, random_state=0)
    """
    if not isinstance(model, FactorModel | NMFClustering):
        names = ", ".join(cls.__name__ for cls in MODELS.values())
        msg = (
            f"save_model takes a fitted model of this package ({names}) or of a class that extends one, or "
            f"NMFClustering; got {type(model).__name__}."
        )
        if isinstance(model, Pipeline):
            msg += (
                " Save its last step, pipeline[-1]; the others need pickle, or to be fitted again to the "
                "same data."
            )
        raise TypeError(msg)
    check_is_fitted(model)
    path = Path(path)
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    if not path.parent.is_dir():
        msg = f"The folder {path.parent} does not exist: create it first, or give another path."
        raise FileNotFoundError(msg)
    arrays: dict[str, np.ndarray] = {}
    text = {"format": _FORMAT, **_estimator_packed("", model, arrays)}
    own = [type(model), type(vars(model).get("model_", model))]
    _unpack("", text, arrays, _by_name(own))  # nothing is written that could not be loaded
    arrays["json"] = np.array(json.dumps(text))
    arrays["checksum"] = np.array(checksum(arrays))
    with new_file(path, force=True) as fresh:
        _write(fresh, arrays)
    return path


def load_model(path: str | os.PathLike[str], *, classes: Iterable[type] = ()) -> Any:
    """Read a model written by `save_model`.

    Loading runs no code from the file, and a file that was changed is refused.

    Parameters
    ----------
    path : path
        The file; ``.npz`` may be left out.
    classes : iterable of classes, default=()
        Your own model classes that the file may hold. `NMFClustering` and the classes in `MODELS` need not be
        listed.

    Returns
    -------
    fitted estimator
        With NumPy arrays; it also transforms torch tensors.

    Raises
    ------
    ValueError, FileNotFoundError
        If the file is missing, damaged or changed, holds a class that is not listed, or needs much more
        memory than its size suggests and LOGNMF_MAX_BYTES does not allow it.

    See Also
    --------
    save_model : Writes the file.

    Examples
    --------
    >>> model = load_model("model.npz")  # doctest: +SKIP
    """
    classes = list(classes)
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, FactorModel)):
            name = cls.__name__ if isinstance(cls, type) else repr(cls)
            msg = f"classes must be model classes of lognmf or extend one; got {name}."
            raise TypeError(msg)
    allowed = _by_name(classes)
    path = Path(path)
    if not path.exists() and path.suffix != ".npz":
        path = path.with_name(f"{path.name}.npz")  # as `save_model` names it
    if not path.is_file():
        msg = f"There is no file {path}: give the path of a model that lognmf.save_model wrote."
        raise FileNotFoundError(msg)
    text, arrays = _read(path)
    name, version = text["class"], text["format"]
    if version != _FORMAT or name not in allowed:
        msg = (
            f"{path} holds a {name} in format {version}; this version of lognmf reads "
            f"format {_FORMAT} of {', '.join(allowed)}. "
            f"If {name} is your own class, pass it: load_model(path, classes=[{name}])."
        )
        raise ValueError(msg)
    if str(arrays.pop("checksum", "")) != checksum(arrays):
        msg = (
            f"{path} was changed since lognmf.save_model wrote it: get another copy, or save the model again."
        )
        raise ValueError(msg)
    try:
        return _unpack("", text, arrays, allowed)
    except Exception as error:  # whatever a hand-made file gets wrong
        msg = f"{path} holds no {name} that this version of lognmf can use: {reason(error)}."
        raise ValueError(msg) from error


def _by_name(classes: Iterable[type]) -> dict[str, Any]:
    """Classes that a file may hold: ours and ``classes``."""
    return {cls.__name__: cls for cls in (*MODELS.values(), NMFClustering, *classes)}


# The file ------------------------------------------------------------------------------


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write the arrays; compressed, unless the file would unpack to more than `load_model` accepts."""
    with path.open("x+b") as file:
        np.savez_compressed(file, **arrays)
        with zipfile.ZipFile(file) as archive:
            needed = sum(member.file_size for member in archive.infolist())
        if needed > usual_bytes(path.stat().st_size):
            file.seek(0)
            file.truncate()
            np.savez(file, **arrays)


def _read(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """The JSON text and the arrays of a file; refused if it holds no model."""
    try:
        check_npz(path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text = json.loads(str(arrays["json"]))
        _ = text["class"], text["format"], text["params"], text["fitted"]
    except (MemoryError, PermissionError):
        raise
    except LimitError as error:
        msg = f"{path} cannot be loaded: {reason(error)}."
        raise ValueError(msg) from error
    except KeyError as error:  # it can be read, and something is not there
        msg = f"{path} holds no model: it is not a file that lognmf.save_model wrote."
        raise ValueError(msg) from error
    except Exception as error:  # zip files, NumPy and JSON fail in many ways
        why = reason(error)
        msg = f"{path} holds no model: it was not written by lognmf.save_model, or is damaged ({why})."
        raise ValueError(msg) from error
    return text, arrays


def checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(repr((name, array.dtype.str, arrays[name].shape)).encode("utf-8", "surrogatepass"))
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# Values as JSON and plain arrays -------------------------------------------------------


def _pack(key: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """``value`` as JSON; arrays go into ``arrays``, and the JSON records their kind."""
    if isinstance(value, FactorModel):
        return _estimator_packed(f"{key}:", value, arrays)
    if sp.issparse(value):
        W = sp.csr_array(value)
        parts = (W.data, W.indices, W.indptr, np.asarray(W.shape))
        arrays.update({f"{key}:{name}": part for name, part in zip(_CSR_PARTS, parts, strict=True)})
        return {"kind": "csr"}
    if isinstance(value, dict):
        return {"kind": "dict", "items": _items_packed(f"{key}:", value, arrays)}
    if isinstance(value, tuple | list):
        items = [_pack(f"{key}:{i}", v, arrays) for i, v in enumerate(value)]
        return {"kind": type(value).__name__, "items": items}
    if isinstance(value, np.ndarray) or is_torch(value) or type(value).__module__.startswith("dask."):
        array = to_numpy(value)
        text = array.dtype == object
        arrays[key] = array.astype(str) if text else array
        return {"kind": "text" if text else "array"}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    msg = f"{key} is a {type(value).__name__}, which needs pickle. Use a number, a word or an array instead."
    raise TypeError(msg)


def _items_packed(prefix: str, items: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: _pack(f"{prefix}{name}", value, arrays) for name, value in items.items()}


def _estimator_packed(prefix: str, model: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The parameters and fitted attributes of a model or clusterer."""
    left_out = _NOT_SAVED.get(type(model), set())
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_") or name == "_known"}
    return {
        "kind": "estimator",
        "class": type(model).__name__,
        "params": _items_packed(f"{prefix}param:", model.get_params(deep=False), arrays),
        "fitted": _items_packed(
            f"{prefix}fitted:", {name: v for name, v in fitted.items() if name not in left_out}, arrays
        ),
    }


def _unpack(key: str, value: Any, arrays: Mapping[str, np.ndarray], allowed: Mapping[str, Any]) -> Any:
    """What `_pack` made the JSON ``value`` of."""
    if not isinstance(value, dict):
        return value
    kind = value["kind"]
    if kind == "estimator":
        return _estimator(f"{key}:" if key else "", value, arrays, allowed)
    if kind == "dict":
        return {name: _unpack(f"{key}:{name}", v, arrays, allowed) for name, v in value["items"].items()}
    if kind in ("tuple", "list"):
        items = [_unpack(f"{key}:{i}", v, arrays, allowed) for i, v in enumerate(value["items"])]
        return items if kind == "list" else tuple(items)
    if kind == "csr":
        data, indices, indptr, shape = (arrays[f"{key}:{part}"] for part in _CSR_PARTS)
        W = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        check_sparse(key, W)
        return W
    array = arrays[key]
    return array.astype(object) if kind == "text" else array


def _estimator(
    prefix: str, text: Mapping[str, Any], arrays: Mapping[str, np.ndarray], allowed: Mapping[str, Any]
) -> Any:
    """The model or clusterer; refused if it is none that a fit could have made."""
    name, params = text["class"], {}
    cls = allowed.get(name)
    if cls is None or (prefix and not issubclass(cls, FactorModel)):
        msg = f"its model is a {name}, so pass that class: load_model(path, classes=[{name}])"
        raise ValueError(msg)
    for parameter, value in text["params"].items():
        params[parameter] = _unpack(f"{prefix}param:{parameter}", value, arrays, allowed)
    if params.keys() != (expected := set(cls().get_params(deep=False))):
        msg = f"the parameters {sorted(params.keys() ^ expected)} are missing or unknown"
        raise ValueError(msg)
    model = cls(**params)
    model.check_parameters()
    for attribute, value in text["fitted"].items():
        public = attribute.endswith("_") and not attribute.startswith("_") and not hasattr(cls, attribute)
        if not (attribute.isidentifier() and (public or (attribute == "_known" and cls is NMFClustering))):
            msg = f"{attribute!r} is no fitted attribute of {cls.__name__}"
            raise ValueError(msg)
        vars(model)[attribute] = _unpack(f"{prefix}fitted:{attribute}", value, arrays, allowed)
    if cls is NMFClustering:
        vars(model).update(components_=model.model_.components_, number_=None)
        _check_clusterer(model)
    elif text["fitted"] or not prefix:
        _check_model(model)
    return model


# What a fit could have made ------------------------------------------------------------


def _check_model(model: Any) -> None:
    """Refuse fitted attributes that are missing, of a wrong kind, or contradict each other."""
    found = vars(model)
    (k, p), (n, _) = model.components_.shape, model.embedding_.shape
    lowest = -np.inf if model.spec.signed else 0.0
    _check_array("components_", model.components_, (k, p), lowest)
    _check_array("embedding_", model.embedding_, (n, k), lowest)
    shapes = dict.fromkeys(("labels_", "outlier_share_", "outlier_norm_", "residual_norm_"), (n,))
    for name, shape in (shapes | {"combination_": (n, k)}).items():
        if name in found:
            _check_array(name, found[name], shape, 0.0)
    if "is_outlier_" in found:
        _check_array("is_outlier_", np.asarray(model.is_outlier_, dtype=np.uint8), (n,), 0.0)
    evaluations = len(model.history_["objective"])
    for name, column in model.history_.items():
        _check_array(f"history_[{name!r}]", column, (evaluations,), -np.inf)
    used = [*model.spec.auto, *(["scale"] if "scale" in model.get_params(deep=False) else [])]
    checks = {
        "n_iter_": type(model.n_iter_) is int and model.n_iter_ >= 0,
        "objective_": type(model.objective_) is float and np.isfinite(model.objective_),
        "reconstruction_err_": type(model.reconstruction_err_) is float and model.reconstruction_err_ >= 0,
        "stop_reason_": type(model.stop_reason_) is str,
        **{f"{name}_": type(found[f"{name}_"]) is float and 0 <= found[f"{name}_"] < np.inf for name in used},
    }
    _check_all(model, p, checks)
    if found.get("graph_") is not None:
        check_graph(model.graph_, n)


def _check_clusterer(clusterer: Any) -> None:
    """Refuse attributes that are of a wrong kind, or contradict each other or the model."""
    (k, p), m, n = clusterer.components_.shape, len(clusterer.model_.embedding_), len(clusterer.labels_)
    lowest = -np.inf if clusterer.spec.signed else 0.0
    _check_array("embedding_", clusterer.embedding_, (n, k), lowest)
    X, labels = clusterer._known
    numbers = {"labels_": (clusterer.labels_, n, k), "labels of the known samples": (labels, X.shape[0], k)}
    if clusterer.sample_ is not None:
        numbers["sample_"] = clusterer.sample_, m, n
    for name, (array, count, limit) in numbers.items():
        _check_array(name, array, (count,), 0.0)
        if array.dtype.kind not in "iu" or (count and array.max() >= limit):
            msg = f"{name} must be whole numbers below {limit}"
            raise ValueError(msg)
    values = X.data if sp.issparse(X) else X
    _check_array("known samples", values, values.shape, lowest)
    checks = {
        "n_clusters_": type(clusterer.n_clusters_) is int and clusterer.n_clusters_ == k,
        "sample_": clusterer.sample_ is not None or m == n,
        "rows_": type(clusterer.rows_) is list and all(isinstance(row, dict) for row in clusterer.rows_),
        "_known": X.ndim == 2 and X.shape[0] > 0 and X.shape[1] == p and X.dtype.kind == "f",
    }
    _check_all(clusterer, p, checks)


def _check_all(model: Any, p: int, checks: Mapping[str, bool]) -> None:
    """Refuse a model unless all the ``checks`` of its attributes hold, and those of its ``p`` features."""
    checks = {"n_features_in_": type(model.n_features_in_) is int and model.n_features_in_ == p, **checks}
    for name in ("feature_names_in_", "feature_labels_"):
        names = vars(model).get(name)
        checks[name] = names is None or (names.shape == (p,) and names.dtype == object)
    if wrong := [name for name, right in checks.items() if not right]:
        msg = f"{wrong[0]} is not what a fit sets: got {vars(model)[wrong[0]]!r}"
        raise ValueError(msg)


def _check_array(name: str, array: Any, shape: tuple[int, ...], lowest: float) -> None:
    """Refuse what is no array of finite numbers of this shape, all at least ``lowest``."""
    numbers = isinstance(array, np.ndarray) and array.dtype.kind in "fiu" and array.shape == shape
    if not numbers or not (np.isfinite(array).all() and (array >= lowest).all()):
        kind = "finite" if lowest < 0 else "finite nonnegative"
        msg = f"{name} must be an array of shape {shape} of {kind} numbers"
        raise ValueError(msg)
