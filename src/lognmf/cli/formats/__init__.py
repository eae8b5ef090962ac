"""A data matrix from a file, by the end of its name. Values are returned as they are."""

from collections.abc import Callable
from pathlib import Path

from lognmf.cli.formats.arrays import ARRAYS, load_npy, read_arrays
from lognmf.cli.formats.cells import is_tenx, is_zarr, read_h5ad, read_hdf5, read_tenx_folder, read_zarr
from lognmf.cli.formats.shared import Asked, as_vector, check_labels_exist, ending, open_text, parsing
from lognmf.cli.formats.tables import read_parquet, read_text, read_workbook
from lognmf.datasets import Dataset

__all__ = [
    "ENDINGS",
    "FORMATS",
    "Asked",
    "as_vector",
    "check_labels_exist",
    "ending",
    "load_npy",
    "open_text",
    "parsing",
    "reader",
]

Reader = Callable[[Path, Asked], Dataset]

FORMATS: dict[str, Reader] = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"), read_text),
    ".parquet": read_parquet,
    **dict.fromkeys((".xlsx", ".xls", ".ods"), read_workbook),
    **dict.fromkeys(ARRAYS, read_arrays),
    ".h5ad": read_h5ad,
    ".h5": read_hdf5,
}
"""Readers by the end of the file's name."""

_FOLDERS: tuple[tuple[Callable[[Path], bool], Reader], ...] = (
    (is_tenx, read_tenx_folder),
    (is_zarr, read_zarr),
)

ENDINGS = " or ".join(
    ", ".join(end.lstrip(".") for end in FORMATS if not end.endswith(".gz")).rsplit(", ", 1)
)
"""The formats in words."""


def reader(path: Path) -> Reader | None:
    """What reads a file or a folder; None where nothing does."""
    for suits, read in _FOLDERS:
        if suits(path):
            return read
    return FORMATS.get(ending(path)) if path.is_file() else None
