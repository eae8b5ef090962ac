"""The data of a command: read from files, pictures or by name, checked once and scaled for the models."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf import datasets
from lognmf.cli.formats import (
    ENDINGS,
    Asked,
    as_vector,
    check_labels_exist,
    ending,
    load_npy,
    open_text,
    parsing,
    reader,
)
from lognmf.cli.scaling import SCALINGS, Preparation, hint_at_scale
from lognmf.cli.values import check_matrix, check_values, hint_at_columns
from lognmf.datasets import Dataset
from lognmf.datasets.places import is_archive
from lognmf.files import fingerprint
from lognmf.parameters import check_choice
from lognmf.reading import printable


@dataclass(frozen=True)
class Reading(Asked):
    """What the user says about the data: which columns mean what, and what to do before a fit."""

    transpose: bool = False  # samples are in columns
    image_shape: str | None = None  # a text like 32x32, as the next one
    resize: str | None = None
    scale_features: str | None = None  # a name in `SCALINGS`
    normalize: bool = True  # scale samples to unit norm


_NOTHING = Reading()


def reading(context: Any) -> Reading:
    """What the options of a command say about its data."""
    names = {field.name for field in fields(Reading)}
    return Reading(**{name: value for name, value in context.params.items() if name in names})


def load(file: str, given: Reading, estimators: Iterable[Any]) -> tuple[Dataset, dict[str, Any], Preparation]:
    """The data as the models will see them, paths and hashes, and how they were scaled.

    Data that no estimator takes are refused.
    """
    how = given.scale_features
    if how is not None:
        check_choice("scale_features", how, SCALINGS)
    data = read(file, given)
    source = _source(file, given.labels, data)
    X = check_values(data, file, estimators, how=how)
    if not given.transpose:
        hint_at_columns(data, given)
    if how is None:
        hint_at_scale(X, data.feature_names)
    scales = {} if how is None else SCALINGS[how](X)
    preparation = Preparation(data.feature_names, **scales, unit=given.normalize)
    return replace(data, X=preparation(X)), source, preparation


def read(file: str, given: Reading) -> Dataset:
    """The data as they are in the file."""
    return shaped(read_data(file, given, resize=size_of("--resize", given.resize)), given, file)


def shaped(data: Dataset, given: Reading, file: str) -> Dataset:
    """The same with the height and width of its pictures, if they are given."""
    shape = size_of("--image-shape", given.image_shape)
    if shape is None:
        return data
    pixels = shape[0] * shape[1]
    if pixels != data.X.shape[1]:
        msg = (
            f"--image-shape {given.image_shape} has {pixels} pixels, but the samples of {file} have "
            f"{data.X.shape[1]} features."
        )
        raise ValueError(msg)
    return replace(data, image_shape=shape)


def read_data(
    path: str | os.PathLike[str], given: Reading = _NOTHING, *, resize: tuple[int, int] | None = None
) -> Dataset:
    """A data matrix and, if there are any, its labels: numbers or text, in ``y``.

    ``path`` is a file in one of the `FORMATS` with one sample per row, a zarr store, a folder of 10x
    Genomics, a folder or archive of pictures, or the name of a data set, like "digits"; a folder of that name
    is "./digits". In text a first row that holds anything but numbers is a header. In npz and mat the matrix
    is called X, data, fea or arr_0, or is the only one.

    Labels are a column of the table, an array of the npz or mat file, or else a file (csv, txt or npy) with
    one label per line. Arrays called y, labels, gnd or target, the sub-folders of pictures and the classes of
    a data set are used by default.

    >>> read_data("digits").X.shape
    (1797, 64)
    """
    wanted = given.labels
    named = _is_name(path)
    readable = None if named else reader(Path(path))
    pictures = not named and readable is None and _is_pictures(path)
    if resize is not None and not pictures:
        msg = f"resize is for a folder or an archive of pictures, and {path} is neither: leave it out."
        raise ValueError(msg)
    if named:
        data = datasets.load(os.fspath(path))
    elif pictures:
        data = datasets.load_folder(path, resize=resize)
        if data.y is not None:
            data = replace(data, y=np.array(data.class_names)[data.y], class_names=None)
    else:
        if readable is None:
            raise _no_file(Path(path))
        _hint_at_cells(Path(path), given)
        data = readable(Path(path), given)
    check_matrix(data.X, path)
    if given.transpose:
        data = _transposed(data, path)
    if named and wanted == "target":
        wanted = None
    if wanted is not None and (named or pictures or data.y is None):
        data = replace(data, y=_read_labels(wanted, path), class_names=None)
    if data.y is not None:
        _check_labels(data.y, data.X.shape, wanted or "its labels", path)
    return named_by_file(data, given, path)


def named_by_file(data: Dataset, given: Reading, path: Any) -> Dataset:
    """The same with names of the features from a file, if one is given."""
    if given.features is None or not Path(given.features).is_file():
        return data
    return replace(data, feature_names=_names(Path(given.features), data.X.shape[1], path))


def _hint_at_cells(path: Path, given: Reading) -> None:
    """Refuse a matrix of genes × cells that lies beside its barcodes."""
    beside = path.parent / "barcodes.tsv"
    if (
        ending(path).startswith(".mtx")
        and not given.transpose
        and (beside.is_file() or beside.with_suffix(".tsv.gz").is_file())
    ):
        msg = (
            f"{path} lies beside the barcodes of 10x Genomics, so its rows are genes: give the folder "
            f"{path.parent}, which has the names too, or add --transpose."
        )
        raise ValueError(msg)


def _transposed(data: Dataset, path: Any) -> Dataset:
    """Samples and features exchanged."""
    if data.y is not None:
        msg = f"{path} has labels of its rows, so its rows are the samples: leave out --transpose."
        raise ValueError(msg)
    X = sp.csr_array(data.X.T) if sp.issparse(data.X) else np.ascontiguousarray(data.X.T)
    names: Any = {"feature_names": data.sample_names, "sample_names": data.feature_names}
    return replace(data, X=X, **names, image_shape=None)


def _names(file: Path, features: int, path: Any) -> tuple[str, ...]:
    """Names of the features, one per line; of several columns, as in features.tsv, the first."""
    with parsing(file), io.TextIOWrapper(open_text(file), encoding="utf-8-sig") as lines:
        text = lines.read().splitlines()
    names = tuple(line.split("\t")[0].strip() for line in text if line.strip())
    if len(names) != features:
        msg = f"--features {file} holds {len(names)} names for the {features} features of {path}."
        raise ValueError(msg)
    return tuple(map(printable, names))


def _is_name(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` names a data set; a name in capital letters may also be that of a file."""
    given = os.fspath(path)
    return given in datasets.NAMES or (given.lower() in datasets.NAMES and not Path(given).exists())


def _is_pictures(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a folder, or an archive going by the end of its name."""
    return Path(path).is_dir() or (Path(path).is_file() and is_archive(path))


def _no_file(path: Path) -> Exception:
    """Why there is nothing to read."""
    allowed = (
        f"{ENDINGS} file, a zarr store, a folder of 10x Genomics, a folder or archive of pictures, or the "
        f"name of a data set ({', '.join(datasets.NAMES)})"
    )
    if not path.is_file():
        return FileNotFoundError(f"There is no file {path}: give a {allowed}.")
    return ValueError(f"{path} is of no known format, going by the end of its name: give a {allowed}.")


def size_of(option: str, text: str | None) -> tuple[int, int] | None:
    """Height and width from a text like 32x32."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)[x×](\d+)", text)
    if match is None:
        msg = f"{option} must be height x width, like 32x32; got {text!r}."
        raise ValueError(msg)
    return int(match[1]), int(match[2])


def _source(file: str, labels: str | None, data: Dataset) -> dict[str, Any]:
    """Paths and hashes of what was read; where the values are not of a single file, their own hash."""
    path = Path(file).resolve()
    named = _is_name(file)
    values = named or path.is_dir()
    source = {
        "path": None if named else str(path),
        "sha256": _values_hash(data.X) if values else fingerprint(path),
    }
    if named:
        source |= {"dataset": data.name, "source": data.source}
        source |= {"licence": data.licence, "citation": data.citation}
    if labels is not None and Path(labels).is_file():
        source |= {"labels_path": str(Path(labels).resolve()), "labels_sha256": fingerprint(labels)}
    return source


def _values_hash(X: Any) -> str:
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


# Labels --------------------------------------------------------------------------------


def _read_labels(labels: str, path: Any) -> np.ndarray:
    """One label per line, from a file."""
    check_labels_exist(labels, None, path)
    file = Path(labels)
    if file.suffix.lower() == ".npy":
        with parsing(file):
            return as_vector(load_npy(file))
    if file.suffix.lower() not in (".csv", ".txt"):
        msg = f"The label file {labels} must be a csv, txt or npy file with one label per line."
        raise ValueError(msg)
    with parsing(file):
        rows = _label_lines(file)
    for number, row in enumerate(rows, start=1):
        if len(row) != 1:
            content = "is empty" if not row else f"holds {len(row)} values"
            msg = f"Line {number} of the label file {labels} {content}; it must hold one label."
            raise ValueError(msg)
    return np.array([row[0] for row in rows], dtype=str)


def read_labels(labels: str, shape: tuple[int, int], path: Any) -> np.ndarray:
    """One label per sample, from a file."""
    y = _read_labels(labels, path)
    _check_labels(y, shape, labels, path)
    return y


def _label_lines(path: Path) -> list[list[str]]:
    text = path.read_text(encoding="utf-8-sig").rstrip().splitlines()
    rows = csv.reader(text) if path.suffix.lower() == ".csv" else ([line] for line in text)
    return [[cell.strip() for cell in row if cell.strip() or len(row) > 1] for row in rows]


def _check_labels(y: np.ndarray, shape: tuple[int, int], labels: str, path: Any) -> None:
    if y.ndim != 1:
        msg = f"The labels {labels} have shape {y.shape}; they must be one number or word per sample."
        raise ValueError(msg)
    if len(y) != shape[0]:
        hint = " The matrix seems to be transposed: samples go in rows." if len(y) == shape[1] else ""
        if len(y) == shape[0] + 1:
            hint = " If the first one is a header, remove it."
        msg = f"There are {len(y)} labels in {labels} for the {shape[0]} samples of {path}.{hint}"
        raise ValueError(msg)
    surrogates = y.dtype.kind == "U" and any(
        "\ud800" <= letter <= "\udfff" for letter in set("".join(y.tolist()))
    )
    if y.dtype.kind not in "buifU" or surrogates or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        msg = f"The labels {labels} must be words or finite numbers, one for every sample."
        raise ValueError(msg)
