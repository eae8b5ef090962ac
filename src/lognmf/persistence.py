"""Fitted models in a file, without pickle: an ``.npz`` of plain arrays and one JSON text."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from lognmf.core.arrays import is_torch, to_numpy
from lognmf.files import new_file
from lognmf.models import MODELS
from lognmf.models.base import FactorModel

_FORMAT = 1
# RuntimeError: zipfile finds the file encrypted, or compressed by an unknown method.
_DAMAGE = (BadZipFile, zlib.error, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError)
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
    TypeError, FileNotFoundError
        If ``model`` is no model of this package, or the folder does not exist.

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
    with new_file(path, force=True) as fresh, fresh.open("xb") as file:
        np.savez_compressed(file, json=np.array(json.dumps(text)), **arrays)  # type: ignore[arg-type]
    return path


def load_model(path: str | os.PathLike[str], *, classes: Iterable[type] = ()) -> Any:
    """Read a model written by `save_model`.

    Loading runs no code from the file.

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
    ValueError
        If the file is damaged, or holds a class that is not listed.

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
    with path.open("rb") as opened:
        try:
            file = np.load(opened, allow_pickle=False)
            text = json.loads(str(file["json"]))
            name, version, _, _ = text["class"], text["format"], text["params"], text["fitted"]
        except _DAMAGE as error:
            msg = f"{path} holds no model: it was not written by lognmf.save_model, or is damaged."
            raise ValueError(msg) from error
        if version != _FORMAT or name not in allowed:
            msg = (
                f"{path} holds a {name} in format {version}; this version of lognmf reads "
                f"format {_FORMAT} of {', '.join(allowed)}. "
                f"If {name} is your own class, pass it: load_model(path, classes=[{name}])."
            )
            raise ValueError(msg)
        try:
            params = {n: _unpack(f"param:{n}", v, file) for n, v in text["params"].items()}
            fitted = {n: _unpack(f"fitted:{n}", v, file) for n, v in text["fitted"].items()}
        except _DAMAGE as error:
            msg = f"{path} is damaged: its arrays cannot be read."
            raise ValueError(msg) from error
    model = allowed[name](**params)
    for attribute, value in fitted.items():
        setattr(model, attribute, value)
    return model


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
    if isinstance(value, np.ndarray) or is_torch(value):
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


def _unpack(key: str, value: Any, file: Any) -> Any:
    """What `_pack` made the JSON ``value`` of."""
    if not isinstance(value, dict):
        return value
    if value["kind"] == "dict":
        return {name: _unpack(f"{key}:{name}", v, file) for name, v in value["items"].items()}
    if value["kind"] == "tuple":
        return tuple(_unpack(f"{key}:{i}", v, file) for i, v in enumerate(value["items"]))
    if value["kind"] == "csr":
        data, indices, indptr, shape = (file[f"{key}:{part}"] for part in _CSR_PARTS)
        return sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
    array = file[key]
    return array.astype(object) if value["kind"] == "text" else array
