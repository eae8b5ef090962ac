"""Fitted models and clusterers in a file, without pickle: an ``.npz`` of plain arrays and one JSON text."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from lognmf.clusterer import NMFClustering
from lognmf.files import new_file
from lognmf.models import MODELS
from lognmf.models.base import FactorModel
from lognmf.persistence.clusterers import clusterer_apart, clusterer_together
from lognmf.persistence.models import model_apart, model_together
from lognmf.persistence.packing import checksum, write
from lognmf.reading import LimitError, check_npz, reason

_FORMAT = 2


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model or clusterer to a file.

    The file appears under its name only when it is complete. Torch tensors are written as NumPy arrays. That
    of a clusterer holds its training samples, too: `predict` needs them.

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
    if not isinstance(model, FactorModel) and type(model) is not NMFClustering:
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
    apart = model_apart if isinstance(model, FactorModel) else clusterer_apart
    text = {"format": _FORMAT, **apart(model, arrays)}
    own = [cls for cls in map(type, (model, getattr(model, "model_", model))) if issubclass(cls, FactorModel)]
    _together(text, arrays, _by_name(own))  # nothing is written that could not be loaded
    arrays["json"] = np.array(json.dumps(text))
    arrays["checksum"] = np.array(checksum(arrays))
    with new_file(path, force=True) as fresh:
        write(fresh, arrays)
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
    allowed = _by_name(_checked(classes))
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
    if str(arrays.pop("checksum", "")) != checksum(arrays):
        msg = (
            f"{path} was changed since lognmf.save_model wrote it: get another copy, or save the model again."
        )
        raise ValueError(msg)
    try:
        return _together(text, arrays, allowed)
    except Exception as error:  # whatever a hand-made file gets wrong
        msg = f"{path} holds no {name} that this version of lognmf can use: {reason(error)}."
        raise ValueError(msg) from error


def _together(text: Mapping[str, Any], arrays: Mapping[str, np.ndarray], allowed: Mapping[str, Any]) -> Any:
    """The model or clusterer that was taken apart."""
    cls = allowed[text["class"]]
    if cls is NMFClustering:
        return clusterer_together(text, arrays, allowed)
    return model_together(cls, text, arrays)


def _by_name(classes: Iterable[type]) -> dict[str, Any]:
    """Classes that a file may hold: ours and ``classes``."""
    return {cls.__name__: cls for cls in (*MODELS.values(), NMFClustering, *classes)}


def _checked(classes: Iterable[type]) -> list[type]:
    """The classes as a list; each must be a model class."""
    classes = list(classes)
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, FactorModel)):
            name = getattr(cls, "__name__", repr(cls))
            msg = f"classes must be model classes of lognmf or extend one; got {name}."
            raise TypeError(msg)
    return classes
