"""The readers of the command line, for Python."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lognmf.datasets import Dataset


def load_data(
    path: str | os.PathLike[str],
    *,
    labels: str | None = None,
    index: str | None = None,
    features: str | None = None,
    layer: str | None = None,
    transpose: bool = False,
    resize: tuple[int, int] | None = None,
) -> Dataset:
    """Read data of any format that the command line takes, with the names of samples and features.

    Parameters
    ----------
    path : path
        A file (csv, tsv, txt, parquet, xlsx, xls, ods, npy, npz, mat, mtx, h5ad, h5; text also as .gz), a
        zarr store, a folder of 10x Genomics, a folder or archive of pictures, or the name of a data set such
        as "digits". Samples are rows.
    labels : str, optional
        True labels: a column, an array or a file with one label per line.
    index : str, optional
        Column with the names of the samples.
    features : str, optional
        Names of the features: a file, or a column of ``var`` of an h5ad file.
    layer : str, optional
        Layer of an h5ad file, or "raw".
    transpose : bool, default=False
        Whether samples are in columns.
    resize : (int, int), optional
        Height and width to which pictures are resized.

    Returns
    -------
    Dataset
        ``X`` (n, p), dense or sparse; ``y``, ``feature_names``, ``sample_names`` and ``image_shape``, None
        where they are not known.

    Raises
    ------
    ValueError, FileNotFoundError, ImportError
        If the file cannot be read, or a package that reads it is not installed; the message says what to do.

    See Also
    --------
    lognmf.normalize : Scales the samples to unit norm, as the command line does.
    lognmf.in_blocks : Reads data that are larger than memory.

    Examples
    --------
    >>> from lognmf import PlainNMF, load_data
    >>> data = load_data("digits")
    >>> data.X.shape, data.image_shape
    ((1797, 64), (8, 8))
    """
    try:
        from lognmf.cli.read import Reading, read_data
    except ImportError as error:
        msg = f'load_data needs {error.name}: run pip install "lognmf[cli]".'
        raise ImportError(msg) from error
    given = Reading(labels=labels, index=index, features=features, layer=layer, transpose=transpose)
    return read_data(path, given, resize=resize)
