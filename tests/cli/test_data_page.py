"""Every command of docs/data.md, run on data of its kind."""

import gzip
import re
import shlex
import zipfile
from pathlib import Path

import anndata
import h5py
import numpy as np
import openpyxl
import pandas
import pytest
import scipy.io
import scipy.sparse as sp
import zarr
from PIL import Image

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
COMMANDS = re.findall(r"`(lognmf [^`]*)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
KINDS = np.repeat(["u", "v", "w"], 6)
NAMES = [f"gene {j}" for j in range(6)]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """A folder with a file of every kind."""
    here = tmp_path_factory.mktemp("shelf")
    rng = np.random.default_rng(0)
    X = np.round(np.eye(3)[np.repeat([0, 1, 2], 6)].repeat(2, axis=1) + rng.random((18, 6)) / 4, 3)
    frame = pandas.DataFrame(X, columns=NAMES)
    labelled = frame.assign(kind=KINDS)
    frame.to_csv(here / "table.csv", index=False)
    frame.to_csv(here / "bare.csv", index=False, header=False)
    labelled.to_csv(here / "labelled.csv", index=False)
    (here / "kinds.txt").write_text("\n".join(KINDS))
    labelled.assign(who=[f"s{i}" for i in range(18)]).to_csv(here / "named.csv", index=False)
    frame.set_axis([f"s{i}" for i in range(18)]).to_csv(here / "frame.csv")
    pandas.DataFrame(X).to_csv(here / "counted.csv", index=False)
    frame.to_csv(here / "european.csv", index=False, sep=";", decimal=",")
    frame.to_csv(here / "table.csv.gz", index=False)
    (frame * [1, 1, 1, 1, 1, 1000]).to_csv(here / "uneven.csv", index=False)
    frame.T.to_csv(here / "turned.csv")
    frame.mask(rng.random(X.shape) < 0.05).to_csv(here / "holes.csv", index=False)
    frame.to_csv(here / "table.tsv", index=False, sep="\t")
    np.savetxt(here / "table.txt", X)
    book = openpyxl.Workbook()
    for row in [labelled.columns.tolist(), *labelled.values.tolist()]:
        book.active.append(row)
    book.save(here / "book.xlsx")
    frame.set_axis([f"s{i}" for i in range(18)]).to_parquet(here / "table.parquet")
    np.save(here / "table.npy", X)
    np.savez(here / "both.npz", X=X, y=np.repeat([0, 1, 2], 6))
    counts = sp.csr_array(np.round(9 * X * (X > 0.1)))
    sp.save_npz(here / "sparse.npz", counts)
    sp.save_npz(here / "words.npz", counts)
    scipy.io.savemat(here / "table.mat", {"fea": X, "gnd": np.repeat([1, 2, 3], 6)})
    scipy.io.mmwrite(here / "matrix.mtx", sp.coo_array(counts))
    (here / "names.txt").write_text("\n".join(NAMES))
    (here / "matrix.mtx.gz").write_bytes(gzip.compress((here / "matrix.mtx").read_bytes()))
    _write_cells(here, X, counts)
    _draw(here / "faces", rng)
    return here


def _write_cells(here, X, counts):
    obs = pandas.DataFrame({"kind": KINDS}, index=[f"s{i}" for i in range(18)])
    var = pandas.DataFrame(index=NAMES)
    anndata.AnnData(X, obs, var, layers={"counts": sp.csr_matrix(counts)}).write_h5ad(here / "cells.h5ad")
    folder = here / "filtered_feature_bc_matrix"
    folder.mkdir()
    scipy.io.mmwrite(folder / "matrix.mtx", sp.coo_array(counts.T))
    (folder / "features.tsv").write_text("\n".join(f"id {j}\t{name}\tGene" for j, name in enumerate(NAMES)))
    (folder / "barcodes.tsv").write_text("\n".join(obs.index))
    with h5py.File(here / "filtered_feature_bc_matrix.h5", "w") as file:
        parts = {"data": counts.data, "indices": counts.indices, "indptr": counts.indptr, "shape": (6, 18)}
        for name, values in parts.items():
            file[f"matrix/{name}"] = values
        file["matrix/barcodes"] = list(obs.index)
        file["matrix/features/id"] = file["matrix/features/name"] = NAMES
    zarr.save_array(here / "store.zarr", X)


def _draw(folder, rng):
    for kind in "uvw":
        (folder / kind).mkdir(parents=True)
        for i in range(6):
            Image.fromarray(rng.integers(0, 255, (20, 20), dtype=np.uint8)).save(folder / kind / f"{i}.png")
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for file in folder.rglob("*.png"):
            archive.write(file, file.relative_to(folder.parent))


def test_the_page_has_a_table():
    assert len(COMMANDS) >= 25
    assert len(set(COMMANDS)) == len(COMMANDS)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_runs(command, run, shelf, tmp_path, monkeypatch):
    monkeypatch.chdir(shelf)
    code, _, err = run(*shlex.split(command)[1:], "--out", tmp_path / "r")
    assert code == 0, err
    sizes = {len(pandas.read_csv(tmp_path / "r" / name)) for name in ("labels.csv", "codes.csv")}
    assert sizes == {1797 if "digits" in command else 18}
    parts = pandas.read_csv(tmp_path / "r" / "parts.csv")
    named = any(
        word in command for word in ("csv", "tsv", "xlsx", "parquet", "cells", "--features", "filtered")
    )
    unnamed = any(word in command for word in ("bare", "counted", "turned"))
    if named and not unnamed:
        assert parts["feature"].tolist() == NAMES
