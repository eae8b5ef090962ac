"""The factors U (p, k) and V (n, k) in a file of the format in which the samples came."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lognmf.cli.folder import FACTORS


def write_factors(folder: Path, kind: str, U: np.ndarray, V: np.ndarray, names: Sequence[str] | None) -> None:
    """U and V for samples from a file that ends in ``kind``; "" is for all that was read into memory.

    Those of Parquet files are the tables of parts and codes, and need no other file.
    """
    arrays: dict[str, Any] = {"U": U, "V": V}
    if kind == ".npy":
        for name, F in arrays.items():
            np.save(folder / f"{name}.npy", F)
    elif kind == ".zarr":
        import zarr

        group = zarr.open_group(folder / FACTORS, mode="w")
        for name, F in arrays.items():
            group.create_array(name, data=np.ascontiguousarray(F))
    elif kind == ".h5ad":
        import pandas
        from anndata import AnnData

        var = pandas.DataFrame(index=[str(name) for name in names or range(len(U))])
        AnnData(var=var, shape=(len(V), len(U)), obsm={"codes": V}, varm={"parts": U}).write_h5ad(
            folder / "factors.h5ad"
        )
    elif kind in (".h5", ".hdf5"):
        import h5py

        with h5py.File(folder / f"factors{kind}", "w") as file:
            for name, F in arrays.items():
                file[name] = F
    elif kind != ".parquet":
        more: dict[str, Any] = {} if names is None else {"feature_names": np.array(names, dtype=str)}
        np.savez_compressed(folder / "factors.npz", **arrays, **more)
