"""Fitted models in a file, without pickle: an ``.npz`` of plain arrays and one JSON text."""

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

from lognmf.core.arrays import is_torch, to_numpy
from lognmf.files import new_file
from lognmf.graph import check_graph
from lognmf.models import MODELS
from lognmf.models.base import FactorModel
from lognmf.parameters import check_sparse
from lognmf.reading import LimitError, check_npz, reason, usual_bytes

_FORMAT = 2
_CSR_PARTS = ("data", "indices", "indptr", "shape")


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to a file.

    The file appears under its name only when it is complete. Torch tensors are written as NumPy arrays.

    Parameters
    ----------
    model : fitted estimator
        A model of this package, or of your own class that extends one.
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
    if not isinstance(model, FactorModel):
        names = ", ".join(cls.__name__ for cls in MODELS.values())
        msg = (
            f"save_model takes a fitted model of this package ({names}) or of a class that extends one; "
            f"got {type(model).__name__}."
        )
        if isinstance(model, Pipeline):
            msg += (
                " Save its last step, pipeline[-1]; the others need pickle, or to be fitted again to the "
                "same data."
            )
        elif hasattr(model, "model_"):
            msg += " Save its factorisation, clusterer.model_."
        raise TypeError(msg)
    check_is_fitted(model)
    path = Path(path)
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    if not path.parent.is_dir():
        msg = f"The folder {path.parent} does not exist: create it first, or give another path."
        raise FileNotFoundError(msg)
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    arrays: dict[str, np.ndarray] = {}
    text = {
        "format": _FORMAT,
        "class": type(model).__name__,
        "params": _pack("param", model.get_params(deep=False), arrays)["items"],
        "fitted": _pack("fitted", fitted, arrays)["items"],
    }
    _restore(type(model), text, arrays)  # nothing is written that could not be loaded
    arrays["json"] = np.array(json.dumps(text))
    arrays["checksum"] = np.array(_checksum(arrays))
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
        Your own model classes that the file may hold. The classes in `MODELS` need not be listed.

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
    allowed = {cls.__name__: cls for cls in (*MODELS.values(), *_checked(classes))}
    path = Path(path)
    if not path.exists() and path.suffix != ".npz":
        path = path.with_name(f"{path.name}.npz")  # as `save_model` names it
    if not path.is_file():
        msg = f"There is no file {path}: give the path of a model that lognmf.save_model wrote."
        raise FileNotFoundError(msg)
    try:
        check_npz(path)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        text = json.loads(str(arrays["json"]))
        name, version, _, _ = text["class"], text["format"], text["params"], text["fitted"]
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
    if version != _FORMAT or name not in allowed:
        msg = (
            f"{path} holds a {name} in format {version}; this version of lognmf reads "
            f"format {_FORMAT} of {', '.join(allowed)}. "
            f"If {name} is your own class, pass it: load_model(path, classes=[{name}])."
        )
        raise ValueError(msg)
    if str(arrays.pop("checksum", "")) != _checksum(arrays):
        msg = (
            f"{path} was changed since lognmf.save_model wrote it: get another copy, or save the model again."
        )
        raise ValueError(msg)
    try:
        return _restore(allowed[name], text, arrays)
    except Exception as error:  # whatever a hand-made file gets wrong
        msg = f"{path} holds no {name} that this version of lognmf can use: {reason(error)}."
        raise ValueError(msg) from error


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    """The arrays in a file; compressed, unless it would unpack to more than `load_model` accepts."""
    with path.open("x+b") as file:
        np.savez_compressed(file, **arrays)
        with zipfile.ZipFile(file) as archive:
            needed = sum(member.file_size for member in archive.infolist())
        if needed > usual_bytes(path.stat().st_size):
            file.seek(0)
            file.truncate()
            np.savez(file, **arrays)


def _checksum(arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(repr((name, array.dtype.str, arrays[name].shape)).encode("utf-8", "surrogatepass"))
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _restore(cls: type[FactorModel], text: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """The model that `_pack` took apart; refused if it is none that a fit could have made."""
    params, fitted = (
        {name: _unpack(f"{kind}:{name}", value, arrays) for name, value in text[part].items()}
        for kind, part in (("param", "params"), ("fitted", "fitted"))
    )
    expected = set(cls._get_param_names())
    if params.keys() != expected:
        msg = f"the parameters {sorted(params.keys() ^ expected)} are missing or unknown"
        raise ValueError(msg)
    model = cls(**params)
    model._check_parameters()
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


def _check_fitted(model: Any) -> None:
    """Refuse fitted attributes that are missing, of a wrong kind, or contradict each other."""
    (k, p), (n, _) = model.components_.shape, model.embedding_.shape
    lowest = -np.inf if model._signed else 0.0
    _check_array("components_", model.components_, (k, p), lowest)
    _check_array("embedding_", model.embedding_, (n, k), lowest)
    shapes = dict.fromkeys(("labels_", "outlier_share_", "outlier_norm_", "residual_norm_"), (n,))
    for name, shape in (shapes | {"combination_": (n, k)}).items():
        if hasattr(model, name):
            _check_array(name, getattr(model, name), shape, 0.0)
    if hasattr(model, "is_outlier_"):
        _check_array("is_outlier_", np.asarray(model.is_outlier_, dtype=np.uint8), (n,), 0.0)
    evaluations = len(model.history_["objective"])
    for name, column in model.history_.items():
        _check_array(f"history_[{name!r}]", column, (evaluations,), -np.inf)
    names = getattr(model, "feature_names_in_", None)
    checks = {
        "n_features_in_": type(model.n_features_in_) is int and model.n_features_in_ == p,
        "feature_names_in_": names is None or (names.shape == (p,) and names.dtype == object),
        "n_iter_": type(model.n_iter_) is int and model.n_iter_ >= 0,
        "objective_": type(model.objective_) is float and np.isfinite(model.objective_),
        "reconstruction_err_": type(model.reconstruction_err_) is float and model.reconstruction_err_ >= 0,
        "stop_reason_": type(model.stop_reason_) is str,
    }
    used = [f"{name}_" for name in (*model._auto, *(["scale"] if hasattr(model, "scale") else []))]
    checks |= {name: type(value := getattr(model, name)) is float and 0 <= value < np.inf for name in used}
    wrong = [name for name, right in checks.items() if not right]
    if wrong:
        msg = f"{wrong[0]} is not what a fit sets: got {getattr(model, wrong[0])!r}"
        raise ValueError(msg)
    if getattr(model, "graph_", None) is not None:
        check_graph(model.graph_, n)


def _check_array(name: str, array: Any, shape: tuple[int, ...], lowest: float) -> None:
    """Refuse what is no array of finite numbers of this shape, all at least ``lowest``."""
    numbers = isinstance(array, np.ndarray) and array.dtype.kind in "fiu" and array.shape == shape
    if not numbers or not (np.isfinite(array).all() and (array >= lowest).all()):
        kind = "finite" if lowest < 0 else "finite nonnegative"
        msg = f"{name} must be an array of shape {shape} of {kind} numbers"
        raise ValueError(msg)


def _checked(classes: Iterable[type]) -> list[type]:
    """The classes as a list; each must be a model class."""
    classes = list(classes)
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, FactorModel)):
            name = getattr(cls, "__name__", repr(cls))
            msg = f"classes must be model classes of lognmf or extend one; got {name}."
            raise TypeError(msg)
    return classes


def _pack(key: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """``value`` as JSON; arrays go into ``arrays``, and the JSON records their kind."""
    if sp.issparse(value):
        W = sp.csr_array(value)
        for part in _CSR_PARTS:
            arrays[f"{key}:{part}"] = np.asarray(getattr(W, part))
        return {"kind": "csr"}
    if isinstance(value, dict):
        return {
            "kind": "dict",
            "items": {name: _pack(f"{key}:{name}", v, arrays) for name, v in value.items()},
        }
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [_pack(f"{key}:{i}", v, arrays) for i, v in enumerate(value)]}
    if isinstance(value, np.ndarray) or is_torch(value) or type(value).__module__.startswith("dask."):
        array = to_numpy(value)
        text = array.dtype == object
        arrays[key] = array.astype(str) if text else array
        return {"kind": "text" if text else "array"}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    msg = f"{key} is a {type(value).__name__}, which needs pickle. Use a number, a word or an array instead."
    raise TypeError(msg)


def _unpack(key: str, value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """What `_pack` made the JSON ``value`` of."""
    if not isinstance(value, dict):
        return value
    if value["kind"] == "dict":
        return {name: _unpack(f"{key}:{name}", v, arrays) for name, v in value["items"].items()}
    if value["kind"] == "tuple":
        return tuple(_unpack(f"{key}:{i}", v, arrays) for i, v in enumerate(value["items"]))
    if value["kind"] == "csr":
        data, indices, indptr, shape = (arrays[f"{key}:{part}"] for part in _CSR_PARTS)
        W = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
        check_sparse(key, W)
        return W
    array = arrays[key]
    return array.astype(object) if value["kind"] == "text" else array
