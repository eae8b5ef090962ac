"""Every command and every example of docs/data.md, run on data of its kind."""

import ast
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
from sklearn.feature_extraction.text import TfidfTransformer

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
TEXT = PAGE.read_text(encoding="utf-8")
COMMANDS = re.findall(r"`(lognmf [^`]*)` \|$", TEXT, re.MULTILINE)
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
BOTH = re.findall(r"```\n(lognmf [^\n]*)\n```\n```python\n(.*?)```", TEXT, re.DOTALL)
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
    sp.save_npz(here / "tfidf.npz", sp.csr_array(TfidfTransformer().fit_transform(counts)))
    (here / "words.txt").write_text("\n".join(NAMES))
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


@pytest.mark.parametrize(("command", "example"), BOTH, ids=[command for command, _ in BOTH])
def test_one_command_or_three_lines(command, example, run, shelf, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(shelf)
    code, out, err = run(*shlex.split(command)[1:], "--out", tmp_path / "r")
    assert code == 0, err
    lines = example.splitlines()
    assert len(lines) == 3
    names = {}
    exec(BLOCKS[0] + example, names)
    assert names["model"].components_.shape[0] == 3
    table = pandas.read_csv(tmp_path / "r" / "parts.csv")
    if "faces" in command:
        assert Path("parts.png").stat().st_size > 5000
        return
    assert table["feature"].tolist() == NAMES
    tops = ast.literal_eval(capsys.readouterr().out)
    assert len(tops) == 3
    assert {name for top in tops for name in top} <= set(NAMES)
    assert "largest features" in out
    assert any(name in out for name in NAMES)


def test_the_five_kinds_are_there():
    first = [command.split()[2] for command, _ in BOTH]
    assert first == ["labelled.csv", "faces", "filtered_feature_bc_matrix", "tfidf.npz", "cells.h5ad"]


def test_the_other_examples(shelf, monkeypatch):
    monkeypatch.chdir(shelf)
    names = {}
    for block in BLOCKS:
        exec(block, names)
    cells, codes, filled, table = (names[name] for name in ("cells", "codes", "filled", "table"))
    assert cells.obsm["X_nmf"].shape == (18, 3)
    assert cells.varm["parts"].shape == (6, 3)
    assert codes.index.tolist() == [f"s{i}" for i in range(18)]
    assert table.isna().any(axis=None)
    assert filled.notna().all(axis=None)
    cells.write_h5ad(shelf / "with-parts.h5ad")
    np.testing.assert_array_equal(
        anndata.read_h5ad(shelf / "with-parts.h5ad").varm["parts"], cells.varm["parts"]
    )
