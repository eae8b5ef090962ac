"""Fitted models in a file, without pickle: an ``.npz`` of plain arrays and one JSON text.

Loading runs no code from the file.
"""

from __future__ import annotations

import json
import os
import uuid
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from lognmf.core.arrays import is_torch, to_numpy
from lognmf.models import MODELS

__all__ = ["load", "save"]

_FORMAT = 1
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    NotImplementedError,  # what zipfile says to a method of compression it does not know
    OSError,
    RuntimeError,  # and to a file that seems encrypted
    TypeError,
    ValueError,
)
_CSR_PARTS = ("data", "indices", "indptr", "shape")


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to ``path``.

    The file appears under its name only when it is complete. Torch tensors are written
    as NumPy arrays.

    Parameters
    ----------
    model : fitted estimator of this package
    path : path
        A missing ``.npz`` is added.

    Returns
    -------
    Path
        Where the model is.

    See Also
    --------
    load : Read it back.
    """
    if type(model) not in MODELS.values():
        names = ", ".join(cls.__name__ for cls in MODELS.values())
        msg = f"save takes a fitted estimator of this package ({names}); got {type(model).__name__}."
        raise TypeError(msg)
    check_is_fitted(model)
    path = Path(path)
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    fitted = {name: value for name, value in vars(model).items() if name.endswith("_")}
    arrays: dict[str, np.ndarray] = {}
    text = {
        "format": _FORMAT,
        "class": type(model).__name__,
        "params": {
            name: _pack(f"param:{name}", v, arrays) for name, v in model.get_params(deep=False).items()
        },
        "fitted": {name: _pack(f"fitted:{name}", v, arrays) for name, v in fitted.items()},
    }
    # Not mkstemp: its file may be read by its owner only.
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            np.savez_compressed(file, json=np.array(json.dumps(text)), **arrays)  # type: ignore[arg-type]
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by `save`.

    Parameters
    ----------
    path : path
        The file; ``.npz`` may be left out, as in `save`.

    Returns
    -------
    fitted estimator
        With NumPy arrays; it transforms torch tensors all the same.
    """
    path = Path(path)
    if not path.exists() and path.suffix != ".npz":
        path = path.with_name(f"{path.name}.npz")  # as `save` calls it
    with path.open("rb") as opened:
        try:
            file = np.load(opened, allow_pickle=False)
            text = json.loads(str(file["json"]))
            text["class"], text["format"], text["params"], text["fitted"]
        except _DAMAGE as error:
            msg = f"{path} holds no model: it was not written by lognmf.save, or is damaged."
            raise ValueError(msg) from error
        classes = {cls.__name__: cls for cls in MODELS.values()}
        if text["format"] != _FORMAT or text["class"] not in classes:
            msg = (
                f"{path} holds a {text['class']} in format {text['format']}; this version of lognmf reads "
                f"format {_FORMAT} of {', '.join(classes)}."
            )
            raise ValueError(msg)
        try:
            params = {n: _unpack(f"param:{n}", v, file) for n, v in text["params"].items()}
            fitted = {n: _unpack(f"fitted:{n}", v, file) for n, v in text["fitted"].items()}
        except _DAMAGE as error:
            msg = f"{path} is damaged: its arrays cannot be read."
            raise ValueError(msg) from error
    model = classes[text["class"]](**params)
    for name, value in fitted.items():
        setattr(model, name, value)
    return model


def _pack(key: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """``value`` as JSON; arrays go to ``arrays`` and leave a note of their kind."""
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
