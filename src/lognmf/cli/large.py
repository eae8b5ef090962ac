"""Data that need more memory than a command may use: read in blocks of rows, whenever a fit needs them."""

from __future__ import annotations

import copy
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lognmf.cli.formats.cells import RAW
from lognmf.cli.options import interruptible
from lognmf.cli.read import Reading, named_by_file, read_labels, shaped
from lognmf.cli.scaling import SCALINGS, Preparation
from lognmf.core.terms.frobenius import squared_residuals
from lognmf.datasets import Dataset
from lognmf.models.validation import converted
from lognmf.reading import printable
from lognmf.sources import RowBlocks, in_blocks, on_workers
from lognmf.sources.arrays import library
from lognmf.sources.on_disk import READERS
from lognmf.sources.rows import BLOCK_BYTES

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PATIENCE = 20
"""Seconds to wait for a scheduler, and for its first worker."""

_BLOCKS = 8
"""Blocks that the memory must hold: two at a time, and room for factors and temporaries."""


def memory_in_bytes(text: str | None) -> int:
    """Bytes from a text like 2GB; by default half of the machine's memory."""
    if text is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    match = re.fullmatch(r"([\d.]+) ?([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    try:
        found = 0 if match is None else int(float(match[1]) * _UNITS[match[2].upper()])
    except ValueError:
        found = 0
    if found < 1:
        msg = f"--memory must be a size like 500MB or 2GB; got {text!r}."
        raise ValueError(msg)
    return found


def load_in_blocks(
    file: str, given: Reading, memory: int, *, always: bool = False
) -> tuple[Dataset, dict[str, Any], Preparation] | None:
    """As `read.load`, in blocks of rows; None where the data fit into so many bytes or cannot be cut.

    With ``always`` they are cut also if they fit, and refused if they cannot be.
    """
    path = Path(file)
    if path.suffix.lower() not in READERS or not path.exists():
        if always and path.exists():
            msg = f"--scheduler takes files that end in {', '.join(READERS)}; got {file}."
            raise ValueError(msg)
        return None
    parts = path.suffix.lower() == ".parquet" and path.is_dir()
    key = {None: None, RAW: f"{RAW}/X"}.get(given.layer, f"layers/{given.layer}")
    if not (parts or always or _bytes_in_memory(path, key) > memory):
        return None
    how = given.scale_features
    refused = {"--transpose": given.transpose, "--index": given.index, "--resize": given.resize}
    refused[f"--scale-features {how}"] = how not in (None, "log1p")
    if wrong := next((option for option, asked in refused.items() if asked), None):
        msg = f"{wrong} needs all of {file} in memory: leave it out, or raise --memory ({memory} bytes)."
        raise ValueError(msg)
    source = in_blocks(path, key=key)
    if memory // _BLOCKS < BLOCK_BYTES:
        rows = memory // _BLOCKS // max(1, source.shape[1] * source.dtype.itemsize)
        source = in_blocks(path, rows=max(1, rows), key=key)
    title = printable(path.stem)
    data = Dataset(source, None, title, title, feature_names=source.feature_names)
    data = shaped(named_by_file(data, given, file), given, file)
    if given.labels is not None:
        data = replace(data, y=read_labels(given.labels, source.shape, file))
    scales = {} if how is None else SCALINGS[how](None)
    preparation = Preparation(data.feature_names, **scales, unit=given.normalize)
    X = RowBlocks(
        source.shape,
        source.dtype,
        source.edges,
        lambda start, stop: preparation(source.read(slice(start, stop))),
        data.feature_names,
    )
    return replace(data, X=X), {"path": str(path.resolve()), "bytes": _bytes_of(path)}, preparation


def fit_large(estimator: Any, X: RowBlocks, checkpoint: Path, scheduler: str | None) -> None:
    """Fit to data in blocks, here or on the workers of a scheduler, whose codes come here at the end."""
    with interruptible(f"interrupted; the same command goes on from {checkpoint}"):
        if scheduler is None:
            estimator.fit(X, checkpoint=checkpoint)
        else:
            _fit_on_workers(estimator, X, checkpoint, scheduler)


def needs_memory(asked_for: str, file: str) -> ValueError:
    """The error where something cannot be done in blocks."""
    return ValueError(f"{asked_for} needs all of {file} in memory, and it is read in blocks: raise --memory.")


def of_all_samples(clusterer: Any, X: RowBlocks) -> Any:
    """The clusterer's model, which was fitted to some samples, with the codes and the error of all."""
    model, squares = copy.copy(clusterer.model_), 0.0
    model.embedding_, model.graph_ = clusterer.embedding_, None
    U = model.components_.T[:, None, :]
    for rows in X.places:
        block = converted(X.read(rows))
        V = model.embedding_[rows, None, :].astype(block.pattern.dtype)
        squares += float(squared_residuals(block, U, V, block.times(U)).sum())
    model.reconstruction_err_ = math.sqrt(squares)
    return model


def _fit_on_workers(estimator: Any, X: RowBlocks, checkpoint: Path, scheduler: str) -> None:
    with _client(scheduler) as client:
        estimator.fit(on_workers(X, client=client), checkpoint=checkpoint)
        apart = {name: value for name, value in vars(estimator).items() if library(value) == "dask"}
        for name, value in apart.items():
            setattr(estimator, name, value.compute())


@contextmanager
def _client(scheduler: str) -> Iterator[Any]:
    """A connection to a running scheduler that has workers."""
    try:
        from distributed import Client
    except ImportError as error:
        msg = '--scheduler needs Dask: run pip install "lognmf[dask]".'
        raise ValueError(msg) from error
    try:
        client = Client(scheduler, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        msg = (
            f"--scheduler: there is no Dask scheduler at {scheduler}: start one with dask scheduler, which "
            "shows its address."
        )
        raise ValueError(msg) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError as error:
            msg = f"--scheduler: {scheduler} has no workers: start some with dask worker {scheduler}."
            raise ValueError(msg) from error
        yield client


def _bytes_in_memory(path: Path, key: str | None) -> int:
    """Bytes that the samples of a file take in memory, about: files may be compressed."""
    try:
        blocks = in_blocks(path, key=key)
    except (ImportError, OSError, ValueError):  # the reader of whole files says what is wrong
        return _bytes_of(path)
    return max(_bytes_of(path), (len(blocks.edges) - 2) * BLOCK_BYTES)


def _bytes_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files)
