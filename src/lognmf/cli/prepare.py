"""The data of a command: read, checked, and scaled for the models; in blocks of rows if they are large."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lognmf import in_blocks, io, normalize
from lognmf.blocks import RowBlocks
from lognmf.cli.options import request
from lognmf.datasets import Dataset
from lognmf.files import fingerprint
from lognmf.io import few, hint
from lognmf.parameters import check_choice
from lognmf.reading import check_npz, printable

_DROWNS = 0.9
"""Share of the sum of squares from which one feature dominates the others."""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

_UNKNOWN = 8 * 10**9
"""Bytes of memory that are assumed where the system does not say how many there are."""

_BLOCKS = 8
"""Blocks that the memory must hold: two are read at a time, and factors and temporaries need room too."""

BLOCK_FORMATS = (".npy", ".zarr", ".h5", ".hdf5", ".h5ad", ".parquet")


class Loaded(NamedTuple):
    """Data as the models see them, where they come from, and how they were scaled."""

    data: Dataset
    source: dict[str, Any]
    preparation: Preparation
    kind: str = ""  # the ending of the file, if it is read in blocks


def load(file: str, params: Mapping[str, Any]) -> Loaded:
    """The data in ``file``, read into memory and scaled as the options of a command say."""
    how = params["scale_features"]
    if how is not None:
        check_choice("scale_features", how, SCALINGS)
    data = io.read(file, request(params))
    X = data.X if data.X.dtype.kind == "f" else data.X.astype(np.float64)
    if how is None:
        _hint_at_scale(X, data.feature_names)
    if how is not None and (sentence := _unsuitable(file, data, ())):
        raise ValueError(sentence)
    with explained(file, data):
        scales = {} if how is None else SCALINGS[how](X)
        preparation = Preparation(data.feature_names, **scales, unit=not params["no_normalize"])
        scaled = replace(data, X=preparation(X))
    return Loaded(scaled, _source(file, params["labels"], data), preparation)


def _source(file: str, labels: str | None, data: Dataset) -> dict[str, Any]:
    """Paths and hashes of what was read; the hash of the values if there is not exactly one file."""
    path, named = Path(file).resolve(), io.is_name(file)
    source = {
        "path": None if named else str(path),
        "sha256": _values_hash(data.X) if named or path.is_dir() else fingerprint(path),
    }
    if named:
        source |= {"dataset": data.name, "source": data.source}
        source |= {"licence": data.licence, "citation": data.citation}
    if labels is not None and Path(labels).is_file():
        source |= {"labels_path": str(Path(labels).resolve()), "labels_sha256": fingerprint(labels)}
    return source


def _values_hash(X: Any) -> str:
    digest = hashlib.sha256()
    for part in (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


# Values that a model refuses -------------------------------------------------------------


@contextmanager
def explained(file: str, data: Dataset, models: Iterable[Any] = ()) -> Iterator[None]:
    """Errors inside name the infinite, missing or negative entries of the data, if those are the reason."""
    try:
        yield
    except (ValueError, TypeError) as error:
        if sentence := _unsuitable(file, data, list(models)):
            raise ValueError(sentence) from error
        raise


def _unsuitable(file: str, data: Dataset, models: Sequence[Any]) -> str | None:
    """Why no model takes the values; None if one does."""
    values = data.X.data if sp.issparse(data.X) else data.X
    if not isinstance(values, np.ndarray):  # read in blocks
        return None
    infinite, missing = int(np.isinf(values).sum()), int(np.isnan(values).sum())
    if sp.issparse(data.X) and models and not any(model.spec.sparse for model in models):
        return f"{file} is sparse, and the model takes no sparse data: choose another --model."
    if infinite:
        return f"{file} has infinite entries ({infinite}): replace them, or drop these rows."
    takes = any(model.spec.takes_missing(model) for model in models) and not sp.issparse(data.X)
    if missing and models and not takes:
        return (
            f"{file} has missing entries ({missing}): fill them, drop these rows, or choose wnmf or ls-nmf, "
            "which handle missing entries of a dense table."
        )
    if models and not any(model.spec.signed for model in models) and (values < 0).any():
        dense = not sp.issparse(data.X)
        lift = "add --scale-features minmax, which maps each column to 0 to 1, or " if dense else ""
        where = negative_columns(data.X, data.feature_names)
        return f"{file} has negative values in {where}: {lift}choose --model semi-nmf, which takes them."
    return None


def negative_columns(X: Any, names: Sequence[str] | None) -> str:
    """The columns of X with negative entries, in words."""
    low = np.unique(X.indices[X.data < 0]) if sp.issparse(X) else np.flatnonzero((X < 0).any(axis=0))
    words = [f"{j + 1}" if names is None else repr(names[j]) for j in low.tolist()]
    return f"column{'s' if len(low) > 1 else ''} {few(words)}"


# Scaling ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Preparation:
    """How samples are scaled: ``log(1 + X)`` or ``(X − shift) · factor``, then unit norms if requested."""

    feature_names: tuple[str, ...] | None = None
    log: bool = False
    shift: np.ndarray | None = None  # (p,)
    factor: np.ndarray | None = None  # (p,)
    unit: bool = True

    def __call__(self, X: Any) -> Any:
        """Samples (n, p) as the model sees them; missing entries stay missing."""
        if self.log:
            X = np.log1p(X)
        if self.shift is not None:
            X = np.maximum(X - self.shift, 0)  # a new sample may be smaller than all of the fit
        if self.factor is not None:
            X = sp.csr_array(X.multiply(self.factor)) if sp.issparse(X) else X * self.factor
        return normalize(X) if self.unit else X

    def save(self, path: Path) -> None:
        """Write it to an npz file of plain arrays."""
        given: dict[str, Any] = {name: value for name, value in vars(self).items() if value is not None}
        np.savez_compressed(path, **given)

    @classmethod
    def load(cls, path: Path) -> Preparation:
        """Read it from such a file."""
        with io.parsing(path):
            check_npz(path)
            with np.load(path, allow_pickle=False) as file:
                given: dict[str, Any] = {name: file[name] for name in file.files}
            for flag in ("log", "unit"):
                given[flag] = bool(given[flag])
            if "feature_names" in given:
                given["feature_names"] = tuple(given["feature_names"].tolist())
            return cls(**given)

    def in_order(self, X: Any, names: Sequence[str] | None, path: str | os.PathLike[str]) -> Any:
        """The features of new samples, in the order of the fit where both have names."""
        if self.feature_names is None or names is None or tuple(names) == self.feature_names:
            return X
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            msg = f"{path} has several features called {twice!r}, so columns cannot be matched by name."
            raise ValueError(msg)
        places = {name: j for j, name in enumerate(names)}
        lost = [name for name in self.feature_names if name not in places]
        if lost:
            count = f"{len(lost)} of the {len(self.feature_names)}"
            msg = f"{path} lacks {count} features of the model: {few(lost)}."
            raise ValueError(msg)
        known = set(self.feature_names)
        io.hint_at_unknown([name for name in names if name not in known], path)
        return X[:, [places[name] for name in self.feature_names]]


def _minmax(X: Any) -> dict[str, Any]:
    """Each feature from 0 to 1; a sparse one is divided by its largest entry, so that zeros stay zeros."""
    if sp.issparse(X):
        return _max(X)
    low = np.nanmin(X, axis=0)
    return {"shift": low, "factor": 1 / _nonzero(np.nanmax(X, axis=0) - low)}


def _max(X: Any) -> dict[str, Any]:
    """Each feature divided by its largest entry."""
    largest = X.max(axis=0).toarray().reshape(-1) if sp.issparse(X) else np.nanmax(X, axis=0)
    return {"factor": 1 / _nonzero(largest)}


def _log1p(X: Any) -> dict[str, Any]:
    """Logarithm of 1 + X, for counts."""
    if isinstance(X, np.ndarray) or sp.issparse(X):
        lowest = np.fmin.reduce(X.data if sp.issparse(X) else X, axis=None, initial=0)
        if lowest < 0:
            msg = (
                f"--scale-features log1p is for counts, and the data have negative values down to {lowest:g}."
            )
            raise ValueError(msg)
    return {"log": True}


def _tfidf(X: Any) -> dict[str, Any]:
    """Inverse document frequencies, for counts of words."""
    from sklearn.feature_extraction.text import TfidfTransformer

    return {"factor": TfidfTransformer(norm=None).fit(sp.csr_matrix(X)).idf_}


def _nonzero(scale: np.ndarray) -> np.ndarray:
    """Divisors: features that are constant are not scaled."""
    return np.where(scale > 0, scale, 1.0)


SCALINGS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "minmax": _minmax,
    "max": _max,
    "log1p": _log1p,
    "tfidf": _tfidf,
}
"""Scalings of the features by name: ``X -> parameters of Preparation``."""


def _hint_at_scale(X: Any, names: Sequence[str] | None) -> None:
    """Warn if one of several features has nearly all of the sum of squares."""
    if sp.issparse(X):  # a damaged file may promise more features than memory has room for
        columns, place = np.unique(X.indices, return_inverse=True)
        squares = np.bincount(place, X.data.astype(np.float64) ** 2, len(columns))
    else:
        columns, squares = np.arange(X.shape[1]), np.einsum("ij,ij->j", X, X, dtype=np.float64)
        if np.isnan(squares).any():
            squares = np.nansum(X.astype(np.float64) ** 2, axis=0)
    total = squares.sum()
    if X.shape[1] < 3 or not np.isfinite(total) or squares.max(initial=0) <= _DROWNS * total:
        return
    worst = int(squares.argmax())
    which = f"{columns[worst] + 1}" if names is None else f"{names[columns[worst]]!r}"
    hint(
        f"column {which} has {squares[worst] / total:.0%} of the sum of squares, so all parts will be about "
        "it; --scale-features minmax brings the columns to one scale."
    )


# Data that are larger than memory --------------------------------------------------------


def memory_in_bytes(text: str | None) -> int:
    """Bytes from a text like 2GB; by default half of the machine's memory."""
    if text is None:
        return _memory() // 2
    match = re.fullmatch(r"([\d.]+) ?([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    try:
        found = 0 if match is None else int(float(match[1]) * _UNITS[match[2].upper()])
    except ValueError:
        found = 0
    if found < 1:
        msg = f"--memory must be a size like 500MB or 2GB; got {text!r}."
        raise ValueError(msg)
    return found


def _memory() -> int:
    """Bytes of memory of the machine."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        return _UNKNOWN


def load_in_blocks(file: str, params: Mapping[str, Any], *, always: bool = False) -> Loaded | None:
    """As `load`, in blocks of rows; None if the data fit into ``--memory`` or cannot be read in blocks.

    With ``always`` data that fit are read in blocks too, and others refused.
    """
    memory, path, how = memory_in_bytes(params["memory"]), Path(file), params["scale_features"]
    if path.suffix.lower() not in BLOCK_FORMATS or not path.exists():
        if always and path.exists():
            msg = f"--scheduler takes files that end in {', '.join(BLOCK_FORMATS)}; got {file}."
            raise ValueError(msg)
        return None
    parts = path.suffix.lower() == ".parquet" and path.is_dir()
    layer = params["layer"]
    key = {None: None, "raw": "raw/X"}.get(layer, f"layers/{layer}")
    if not (parts or always or _bytes_in_memory(path, key) > memory):
        return None
    refused = {"--transpose": params["transpose"], "--index": params["index"], "--resize": params["resize"]}
    refused[f"--scale-features {how}"] = how not in (None, "log1p")
    if wrong := next((option for option, given in refused.items() if given), None):
        msg = f"{wrong} needs all of {file} in memory: leave it out, or raise --memory ({memory} bytes)."
        raise ValueError(msg)
    source = in_blocks(path, key=key)
    bytes_per_row = max(1, source.shape[1] * source.dtype.itemsize)
    rows = max(1, memory // _BLOCKS // bytes_per_row)
    if rows < max(np.diff(source.edges)):
        source = in_blocks(path, rows=rows, key=key)
    title = printable(path.stem)
    data = Dataset(source, None, title, title, feature_names=source.feature_names)
    data = io.completed(data, request(params), file)
    scales = {} if how is None else SCALINGS[how](None)
    preparation = Preparation(data.feature_names, **scales, unit=not params["no_normalize"])
    X = RowBlocks(
        source.shape,
        source.dtype,
        source.edges,
        lambda start, stop: preparation(source.read(slice(start, stop))),
        data.feature_names,
    )
    about = {"path": str(path.resolve()), "bytes": _bytes_of(path)}
    return Loaded(replace(data, X=X), about, preparation, path.suffix.lower())


def needs_memory(option: str, file: str) -> ValueError:
    """The error that something cannot be done in blocks."""
    return ValueError(f"{option} needs all of {file} in memory, and it is read in blocks: raise --memory.")


def _bytes_in_memory(path: Path, key: str | None) -> int:
    """Approximate bytes that the samples of a file take in memory: files may be compressed."""
    try:
        blocks = in_blocks(path, key=key)
    except (ImportError, OSError, ValueError):  # the reader of whole files says what is wrong
        return _bytes_of(path)
    n, p = blocks.shape
    return max(_bytes_of(path), n * p * blocks.dtype.itemsize if len(blocks.edges) > 2 else 0)


def _bytes_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
