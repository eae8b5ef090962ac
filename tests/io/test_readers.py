"""Readers: every format gives back what was written, and refuses in a sentence what it cannot read."""

import csv
import gzip
import shutil
import sys
import warnings
import zipfile

import anndata
import h5py
import numpy as np
import openpyxl
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse as sp
import zarr
from PIL import Image

import lognmf
from lognmf import datasets
from lognmf.io.load import FORMATS
from lognmf.io.request import ending

NAMES = ("alpha", "b c", "δ")


def load_data(path, labels=None, **more):
    return lognmf.load_data(path, labels=labels, **more)


@pytest.fixture
def X(rng):
    return np.round(rng.random((7, 3)) * (rng.random((7, 3)) < 0.7), 3)


@pytest.fixture
def y():
    return np.array([0, 1, 2, 0, 1, 2, 0])


def write_rows(path, rows, delimiter=","):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def write(path, X):
    """``X`` in the format of ``path``, with names where the format has them."""
    kind = ending(path)
    table = [NAMES, *X.tolist()]
    if kind in (".csv", ".tsv", ".txt"):
        return write_rows(path, table, "," if kind == ".csv" else "\t")
    if kind.endswith(".gz"):
        plain = write(path.with_suffix(""), X)
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif kind == ".parquet":
        pa.parquet.write_table(pa.table({name: X[:, j] for j, name in enumerate(NAMES)}), path)
    elif kind in (".xlsx", ".xls", ".ods"):
        write_sheet(path, table)
    elif kind == ".npy":
        np.save(path, X)
    elif kind == ".npz":
        np.savez(path, X)
    elif kind == ".mat":
        scipy.io.savemat(path, {"fea": X})
    elif kind == ".h5ad":
        cells(X).write_h5ad(path)
    elif kind == ".h5":
        write_tenx(path, X)
    else:
        scipy.io.mmwrite(path, sp.coo_array(X))
    return path


def write_sheet(path, rows):
    """A workbook; calamine tells the format by the content, so that xlsx serves for the others."""
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    book.save(path.with_suffix(".xlsx"))
    path.with_suffix(".xlsx").rename(path)


def cells(X):
    """An AnnData object of the samples."""
    names = pandas.DataFrame({"symbol": [name.upper() for name in NAMES]}, index=list(NAMES))
    kinds = pandas.DataFrame({"kind": list("uvuuvvu")}, index=[f"cell {i}" for i in range(len(X))])
    return anndata.AnnData(X, kinds, names, layers={"doubled": sp.csr_matrix(2 * X)})


def write_tenx(path, X):
    """An h5 file as 10x Genomics writes it: genes × cells, by columns."""
    M = sp.csr_array(X)
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix")
        parts = {"data": M.data, "indices": M.indices, "indptr": M.indptr, "shape": M.shape[::-1]}
        for name, values in parts.items():
            group[name] = values
        group["barcodes"] = [f"cell {i}" for i in range(len(X))]
        group["features/id"] = [f"id {j}" for j in range(len(NAMES))]
        group["features/name"] = list(NAMES)


# Round trips ---------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_round_trips(tmp_path, X, ending):
    table = load_data(write(tmp_path / f"my data{ending}", X))
    dense = table.X.toarray() if sp.issparse(table.X) else table.X
    np.testing.assert_allclose(dense, X, atol=1e-15)
    assert table.name == "my data"
    assert table.y is None
    assert table.image_shape is None
    arrays = (".npy", ".npz", ".mat", ".mtx", ".mtx.gz")
    assert table.feature_names == (None if ending in arrays else NAMES)
    named = ending in (".h5ad", ".h5")
    assert table.sample_names == (tuple(f"cell {i}" for i in range(7)) if named else None)
    assert isinstance(table.X, sp.csr_array) == (ending in (".mtx", ".mtx.gz", ".h5"))


def test_endings_may_be_capital(tmp_path, X):
    path = write(tmp_path / "x.npy", X).rename(tmp_path / "X.NPY")
    np.testing.assert_array_equal(load_data(path).X, X)


def test_digits():
    table = load_data("digits")
    assert table.X.shape == (1797, 64)
    assert table.image_shape == (8, 8)
    assert table.name == "digits"
    assert sorted(set(table.y)) == list(range(10))
    np.testing.assert_array_equal(load_data("digits", "target").y, table.y)


def test_digits_with_labels_of_ones_own(tmp_path):
    path = tmp_path / "even.txt"
    path.write_text("\n".join(["odd", "even"] * 898 + ["odd"]))
    assert set(load_data("digits", str(path)).y) == {"odd", "even"}


@pytest.mark.parametrize("name", ["yale", "Yale", "pendigits"])
def test_named_data_sets(data_home, name):
    table, found = load_data(name), datasets.load(name, data_home=data_home)
    np.testing.assert_array_equal(table.X, found.X)
    np.testing.assert_array_equal(table.y, found.y)
    assert table.name == name.lower()
    assert table.image_shape == found.image_shape
    assert table.feature_names == found.feature_names


@pytest.fixture
def pictures(tmp_path, rng):
    """A folder of pictures with a class that has no bright ones."""
    for name, brightest in (("dark", 100), ("light", 256)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for i in range(3):
            grey = rng.integers(brightest, size=(4, 5), dtype=np.uint8)
            Image.fromarray(grey).save(tmp_path / "pictures" / name / f"{i}.png")
    return tmp_path / "pictures"


def test_a_folder_of_pictures(pictures):
    table = load_data(pictures)
    assert table.X.shape == (6, 20)
    assert table.y.tolist() == ["dark"] * 3 + ["light"] * 3
    assert table.image_shape == (4, 5)
    assert table.name == "pictures"
    assert load_data(pictures, resize=(2, 3)).X.shape == (6, 6)


def test_a_folder_of_pictures_with_labels_of_ones_own(pictures):
    labels = pictures.with_name("labels.txt")
    labels.write_text("\n".join("abcabc"))
    assert "".join(load_data(pictures, labels).y) == "abcabc"


def test_an_archive_of_pictures(pictures):
    archive = shutil.make_archive(pictures, "zip", pictures)
    table = load_data(archive)
    assert table.y.tolist() == ["dark"] * 3 + ["light"] * 3
    np.testing.assert_array_equal(table.X, load_data(pictures).X)


def test_a_name_wins_over_a_folder_unless_it_is_written_otherwise(pictures, monkeypatch):
    pictures.rename(pictures.with_name("DIGITS"))
    monkeypatch.chdir(pictures.parent)
    assert load_data("DIGITS").X.shape == (6, 20)
    pictures.with_name("DIGITS").rename("digits")
    assert load_data("digits").X.shape == (1797, 64)
    assert load_data("./digits").X.shape == (6, 20)


@pytest.mark.parametrize("path", ["digits", "x.npy"])
def test_only_pictures_change_their_size(tmp_path, monkeypatch, X, path):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match=r"resize is for a folder .* and \S+ is neither"):
        load_data(path, resize=(2, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, bool])
def test_npy_keeps_the_type(tmp_path, X, dtype):
    table = load_data(write(tmp_path / "x.npy", X.astype(dtype)))
    assert table.X.dtype == dtype


def test_parquet_of_single_precision_stays_single(tmp_path, X):
    table = load_data(write(tmp_path / "x.parquet", X.astype(np.float32)))
    assert table.X.dtype == np.float32
    np.testing.assert_array_equal(table.X, X.astype(np.float32))


def test_sparse_npz(tmp_path, X):
    sp.save_npz(tmp_path / "x.npz", sp.csc_array(X))
    table = load_data(tmp_path / "x.npz")
    assert isinstance(table.X, sp.csr_array)
    np.testing.assert_array_equal(table.X.toarray(), X)


def test_sparse_mat(tmp_path, X, y):
    scipy.io.savemat(tmp_path / "x.mat", {"fea": sp.csc_array(X), "gnd": y[:, None]})
    table = load_data(tmp_path / "x.mat")
    assert isinstance(table.X, sp.csr_array)
    np.testing.assert_array_equal(table.X.toarray(), X)
    np.testing.assert_array_equal(table.y, y)


def test_dense_mtx(tmp_path, X):
    scipy.io.mmwrite(tmp_path / "x.mtx", X)
    table = load_data(tmp_path / "x.mtx")
    assert isinstance(table.X, np.ndarray)
    np.testing.assert_allclose(table.X, X)


# Cells and stores ----------------------------------------------------------------------


def test_anndata_has_labels_layers_and_names(tmp_path, X):
    path = write(tmp_path / "x.h5ad", X)
    table = load_data(path, "kind", layer="doubled", features="symbol")
    np.testing.assert_allclose(table.X.toarray(), 2 * X)
    assert table.feature_names == ("ALPHA", "B C", "Δ")
    assert "".join(table.y) == "uvuuvvu"
    assert load_data(path, index="kind").sample_names == tuple("uvuuvvu")
    raw = cells(X)
    raw.raw = raw.copy()
    raw = raw[:, :2]
    raw.copy().write_h5ad(tmp_path / "raw.h5ad")
    assert load_data(tmp_path / "raw.h5ad").X.shape == (7, 2)
    assert load_data(tmp_path / "raw.h5ad", layer="raw").feature_names == NAMES


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"layer": "tripled"}, r"has no layer 'tripled': it has doubled\."),
        ({"labels": "sort"}, r"'sort' are neither in .* \(kind\) nor a file"),
        ({"index": "who"}, "no column 'who' with the names of the samples among its obs"),
        ({"features": "gene"}, "no column 'gene' with the names of the features among its var"),
    ],
)
def test_what_anndata_does_not_have(tmp_path, X, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        load_data(write(tmp_path / "x.h5ad", X), **given)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("genes", ["features.tsv", "genes.tsv"])
def test_a_folder_of_10x_genomics(tmp_path, X, packed, genes):
    folder = tmp_path / "filtered_feature_bc_matrix"
    folder.mkdir()
    scipy.io.mmwrite(folder / "matrix.mtx", sp.coo_array(X.T))
    write_rows(folder / genes, [[f"id {j}", "same" if j else "alpha", "Gene"] for j in range(3)], "\t")
    write_rows(folder / "barcodes.tsv", [[f"cell {i}"] for i in range(7)], "\t")
    if packed:
        for file in list(folder.iterdir()):
            (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    table = load_data(folder)
    np.testing.assert_allclose(table.X.toarray(), X)
    assert table.feature_names == ("alpha", "same (id 1)", "same (id 2)")
    assert table.sample_names == tuple(f"cell {i}" for i in range(7))
    assert table.name == "filtered_feature_bc_matrix"


def test_a_folder_of_10x_genomics_that_does_not_fit(tmp_path, X):
    scipy.io.mmwrite(tmp_path / "matrix.mtx", sp.coo_array(X.T))
    write_rows(tmp_path / "barcodes.tsv", [["one"]], "\t")
    with pytest.raises(ValueError, match="has 1 barcodes for a matrix of 3 genes and 7 cells"):
        load_data(tmp_path)


def test_zarr(tmp_path, X, y):
    zarr.save_array(tmp_path / "x.zarr", X)
    np.testing.assert_array_equal(load_data(tmp_path / "x.zarr").X, X)
    zarr.save_group(tmp_path / "g.zarr", X=X, y=y)
    table = load_data(tmp_path / "g.zarr")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the formats of zarr
        cells(X).write_zarr(tmp_path / "a.zarr")
    table = load_data(tmp_path / "a.zarr", "kind")
    np.testing.assert_array_equal(table.X, X)
    assert ("".join(table.y), table.feature_names) == ("uvuuvvu", NAMES)


def test_damaged_stores_are_refused_in_a_sentence(tmp_path, X):
    for name in ("x.h5ad", "x.h5"):
        path = write(tmp_path / name, X)
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(ValueError, match=f"{name} cannot be read as"):
            load_data(path)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = X
    with pytest.raises(ValueError, match="it has 0 groups with a matrix of 10x Genomics, and must have one"):
        load_data(tmp_path / "other.h5")


@pytest.mark.parametrize("module", ["anndata", "h5py", "zarr", "python_calamine", "pyarrow"])
def test_a_package_that_is_not_there_is_named(tmp_path, X, monkeypatch, module):
    zarr.save_array(tmp_path / "x.zarr", X)
    file = {
        "anndata": "x.h5ad",
        "h5py": "x.h5",
        "zarr": "x.zarr",
        "python_calamine": "x.xlsx",
        "pyarrow": "x.csv",
    }[module]
    path = tmp_path / file if module == "zarr" else write(tmp_path / file, X)
    monkeypatch.setitem(sys.modules, module, None)
    name = {"python_calamine": "pyarrow and python-calamine"}.get(module, module)
    with pytest.raises(ValueError, match=rf'This file needs {name}: run pip install "lognmf\[\w+\]"'):
        load_data(path)


# Samples in columns, names in files ----------------------------------------------------


def test_samples_in_columns(tmp_path, X, y):
    path = write(tmp_path / "x.csv", X)
    table = load_data(path, transpose=True)
    np.testing.assert_allclose(table.X, X.T)
    assert (table.sample_names, table.feature_names) == (NAMES, None)
    assert sp.issparse(load_data(write(tmp_path / "x.mtx", X), transpose=True).X)
    np.savez(tmp_path / "x.npz", X=X, y=y)
    with pytest.raises(ValueError, match="has labels of its rows, so its rows are the samples"):
        load_data(tmp_path / "x.npz", transpose=True)


def test_names_of_features_from_a_file(tmp_path, X):
    path = write(tmp_path / "x.mtx", X)
    (tmp_path / "names.tsv").write_text("a\tone\nb\ttwo\nc\tthree\n")
    assert load_data(path, features=str(tmp_path / "names.tsv")).feature_names == ("a", "b", "c")
    (tmp_path / "names.tsv").write_text("a\nb\n")
    with pytest.raises(ValueError, match="holds 2 names for the 3 features of"):
        load_data(path, features=str(tmp_path / "names.tsv"))


# Tables --------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [["1", "2", "3"], ["1e-3", "", "-4"], ["nan", "0", "NA"]])
def test_a_row_of_numbers_is_no_header(tmp_path, first):
    table = load_data(write_rows(tmp_path / "x.csv", [first, ["4", "5", "6"]]))
    assert table.X.shape == (2, 3)
    assert table.feature_names is None


@pytest.mark.parametrize("first", [["a", "b", "c"], ["1", "2", "x"], [" a", "b ", "c"]])
def test_a_row_with_a_word_is_a_header(tmp_path, first):
    table = load_data(write_rows(tmp_path / "x.csv", [first, ["4", "5", "6"]]))
    np.testing.assert_array_equal(table.X, [[4, 5, 6]])
    assert table.feature_names == tuple(name.strip() for name in first)


def test_missing_values_are_kept_for_the_estimator(tmp_path):
    table = load_data(write_rows(tmp_path / "x.csv", [["a", "b", "c"], ["1", "", ""], ["NA", "2.5", ""]]))
    np.testing.assert_array_equal(table.X, [[1, np.nan, np.nan], [np.nan, 2.5, np.nan]])


def test_whole_numbers_and_truths_are_numbers(tmp_path):
    table = load_data(write_rows(tmp_path / "x.csv", [["a", "b"], ["1", "true"], ["2", "false"]]))
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 0]])


def test_byte_order_mark(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("1,2\n3,4\n".encode("utf-8-sig"))
    np.testing.assert_array_equal(load_data(path).X, [[1, 2], [3, 4]])


@pytest.mark.parametrize("first", ["", "Unnamed: 0"])
@pytest.mark.parametrize("names", [["a", "b"], ["r1", "r2"], [7, 9]])
def test_a_first_column_without_a_name_has_those_of_the_rows(tmp_path, first, names):
    rows = [[first, "x", "y"], [names[0], 1, 2], [names[1], 3, 4]]
    table = load_data(write_rows(tmp_path / "x.csv", rows))
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    assert table.sample_names == tuple(map(str, names))
    assert table.feature_names == ("x", "y")


def test_what_pandas_writes(tmp_path, X):
    """Names of columns that are numbers, and a column of row numbers."""
    frame = pandas.DataFrame(X)
    frame.to_csv(tmp_path / "with.csv")
    frame.to_csv(tmp_path / "without.csv", index=False)
    for name in ("with.csv", "without.csv"):
        table = load_data(tmp_path / name)
        np.testing.assert_allclose(table.X, X)
        assert table.feature_names == ("0", "1", "2")
    assert load_data(tmp_path / "with.csv").sample_names == tuple("0123456")


def test_names_of_samples_and_labels_apart(tmp_path):
    rows = [["who", "a", "kind"], ["p", 1, "u"], ["q", 2, "v"]]
    table = load_data(write_rows(tmp_path / "x.csv", rows), "kind", index="who")
    assert (table.sample_names, table.y.tolist(), table.feature_names) == (("p", "q"), ["u", "v"], ("a",))
    with pytest.raises(
        ValueError, match="has no column 'whom' with the names of the samples; it has who, a, kind"
    ):
        load_data(tmp_path / "x.csv", "kind", index="whom")


@pytest.mark.parametrize("kind", [".csv", ".txt"])
def test_semicolons_and_decimal_commas(tmp_path, kind):
    path = tmp_path / f"x{kind}"
    path.write_text("a;b\n1,5;2\n-0,25;1e3\n")
    table = load_data(path)
    np.testing.assert_array_equal(table.X, [[1.5, 2], [-0.25, 1000]])
    assert table.feature_names == ("a", "b")
    path.write_text("1,5;2,5\n3,5;4,5\n")
    np.testing.assert_array_equal(load_data(path).X, [[1.5, 2.5], [3.5, 4.5]])
    path.write_text("a;b\n1.5;2\n")
    np.testing.assert_array_equal(load_data(path).X, [[1.5, 2]])


@pytest.mark.parametrize("delimiter", ["\t", " ", ",", ";"])
def test_text_files_are_cut_as_they_are_written(tmp_path, X, delimiter):
    np.savetxt(tmp_path / "x.txt", X, delimiter=delimiter)
    np.testing.assert_allclose(load_data(tmp_path / "x.txt").X, X)


def test_semicolons_in_a_word_cut_nothing(tmp_path):
    rows = [["a", "b; c"], [1, 2], [3, 4]]
    assert load_data(write_rows(tmp_path / "x.csv", rows)).feature_names == ("a", "b; c")


def test_one_column(tmp_path):
    np.testing.assert_array_equal(load_data(write_rows(tmp_path / "x.csv", [["a"], [1], [2]])).X, [[1], [2]])


def test_packed_text_may_not_unpack_to_too_much(tmp_path, monkeypatch):
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1000")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"1,2\n" * 10_000))
    with pytest.raises(ValueError, match=r"cannot be read as csv\.gz: it needs .* bytes of memory"):
        load_data(tmp_path / "x.csv.gz")


def test_a_workbook_with_words_and_labels(tmp_path):
    write_sheet(tmp_path / "x.xlsx", [["who", "a", "b", "kind"], ["p", 1, 2.5, "u"], ["q", None, True, "v"]])
    table = load_data(tmp_path / "x.xlsx", "kind", index="who")
    np.testing.assert_array_equal(table.X, [[1, 2.5], [np.nan, 1]])
    assert (table.sample_names, table.y.tolist(), table.name) == (("p", "q"), ["u", "v"], "x")


@pytest.mark.parametrize("kinds", [["u", "v", "u"], [3, 1, 3]])
def test_label_column(tmp_path, kinds):
    rows = [["a", "kind", "b"]] + [[i, kind, 2 * i] for i, kind in enumerate(kinds)]
    table = load_data(write_rows(tmp_path / "x.csv", rows), "kind")
    np.testing.assert_array_equal(table.X, [[0, 0], [1, 2], [2, 4]])
    assert table.feature_names == ("a", "b")
    assert table.y.tolist() == kinds


def test_label_column_of_parquet(tmp_path):
    kinds = pa.array(["u", "v", "u"]).dictionary_encode()
    pa.parquet.write_table(pa.table({"a": [1.0, 2, 3], "kind": kinds}), tmp_path / "x.parquet")
    table = load_data(tmp_path / "x.parquet", "kind")
    assert table.y.tolist() == ["u", "v", "u"]
    assert table.X.shape == (3, 1)


def test_the_index_of_pandas_is_no_feature(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"a": [1.0, 2]}, index=[70, 90]).to_parquet(tmp_path / "x.parquet")
    table = load_data(tmp_path / "x.parquet")
    assert table.feature_names == ("a",)
    np.testing.assert_array_equal(table.X, [[1], [2]])


# Arrays and labels ---------------------------------------------------------------------


@pytest.mark.parametrize("data", ["X", "data", "fea", "anything"])
@pytest.mark.parametrize("labels", ["y", "labels", "gnd", "target"])
@pytest.mark.parametrize("ending", [".npz", ".mat"])
def test_arrays_are_known_by_their_names(tmp_path, X, y, data, labels, ending):
    path = tmp_path / f"x{ending}"
    (np.savez if ending == ".npz" else lambda p, **a: scipy.io.savemat(p, a))(path, **{data: X, labels: y})
    table = load_data(path)
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, y)


def test_a_named_matrix_wins_over_others(tmp_path, X):
    np.savez(tmp_path / "x.npz", other=X + 1, X=X)
    np.testing.assert_array_equal(load_data(tmp_path / "x.npz").X, X)


def test_labels_name_an_array(tmp_path, X, y):
    np.savez(tmp_path / "x.npz", X=X, y=y, kinds=y + 10)
    np.testing.assert_array_equal(load_data(tmp_path / "x.npz", "kinds").y, y + 10)


def test_an_array_called_y_that_is_no_label_is_left_alone(tmp_path, X):
    np.savez(tmp_path / "x.npz", X=X, y=np.arange(3))
    assert load_data(tmp_path / "x.npz").y is None


def test_words_in_matlab_cells_are_labels(tmp_path, X):
    words = np.array([["u"], ["v"], ["u"], ["u"], ["v"], ["v"], ["u"]], dtype=object)
    scipy.io.savemat(tmp_path / "x.mat", {"X": X, "kind": words})
    assert "".join(load_data(tmp_path / "x.mat", "kind").y) == "uvuuvvu"


@pytest.mark.parametrize("ending", [".txt", ".csv"])
def test_label_file(tmp_path, X, ending):
    labels = tmp_path / f"kinds{ending}"
    labels.write_text("u\nv\nu\nu\nv\nv\nu\n\n")
    assert "".join(load_data(write(tmp_path / "x.npy", X), labels).y) == "uvuuvvu"


def test_label_file_of_numbers(tmp_path, X, y):
    np.save(tmp_path / "y.npy", y[:, None])
    table = load_data(write(tmp_path / "x.mtx", X), str(tmp_path / "y.npy"))
    np.testing.assert_array_equal(table.y, y)


def test_a_column_wins_over_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kind").write_text("p\nq\n")
    path = write_rows(tmp_path / "x.csv", [["a", "kind"], [1, "u"], [2, "v"]])
    assert load_data(path, "kind").y.tolist() == ["u", "v"]


# Refusals ------------------------------------------------------------------------------


def test_no_file(tmp_path):
    told = r"no file .*gone\.csv: give a csv, .* file, a zarr .*, or the name of a data set \(semeion, .*\)"
    with pytest.raises(FileNotFoundError, match=told):
        load_data(tmp_path / "gone.csv")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        load_data(tmp_path / "gone.zip")
    with pytest.raises(ValueError, match="holds no pictures"):
        load_data(tmp_path)


def test_unknown_ending(tmp_path):
    (tmp_path / "x.docx").touch()
    with pytest.raises(
        ValueError,
        match=r"x\.docx is of no known format.*csv, tsv, txt, parquet, .* or h5 file, a zarr store",
    ):
        load_data(tmp_path / "x.docx")


@pytest.mark.parametrize("ending", FORMATS)
def test_broken_files(tmp_path, ending):
    path = tmp_path / f"x{ending}"
    path.write_bytes(b"\xff\x00 this, is\n\x9c nothing")
    with pytest.raises(ValueError, match=rf"x\{ending} cannot be read as {ending[1:]}: .*\.$") as caught:
        load_data(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", FORMATS)
def test_empty_files(tmp_path, ending):
    (tmp_path / f"x{ending}").touch()
    with pytest.raises(ValueError, match=rf"x\{ending} cannot be read as {ending[1:]}"):
        load_data(tmp_path / f"x{ending}")


def test_ragged_rows(tmp_path):
    with pytest.raises(ValueError, match="line 2 has 1 cells, and the first line has 2; all must"):
        load_data(write_rows(tmp_path / "x.csv", [[1, 2], [3]]))


def test_text_that_is_no_label(tmp_path):
    path = write_rows(tmp_path / "x.csv", [["a", "kind"], [1, "u"], [2, "v"]])
    with pytest.raises(
        ValueError, match=r"Column 'kind' of .*x\.csv holds text, not numbers: name it with labels="
    ):
        load_data(path)


def test_text_in_a_table_without_names(tmp_path):
    with pytest.raises(ValueError, match=r"Column 2 of .* holds 'four' in row 2 of the data, which"):
        load_data(write_rows(tmp_path / "x.csv", [[1, 2], [3, "four"]]))


def test_dates_are_no_numbers(tmp_path):
    with pytest.raises(ValueError, match=r"Column 'day' of .* holds date32.* values, not numbers"):
        load_data(write_rows(tmp_path / "x.csv", [["a", "day"], [1, "2024-01-01"]]))


def test_a_column_without_a_name(tmp_path):
    with pytest.raises(ValueError, match=r"Column 2 of .* has no name: name it, or remove it"):
        load_data(write_rows(tmp_path / "x.csv", [["a", ""], [0, 5], [1, 6]]))


def test_labels_that_are_nowhere(tmp_path, X):
    path = write_rows(tmp_path / "x.csv", [["a", "kind"], [1, "u"]])
    with pytest.raises(ValueError, match=r"'knd' are neither in .* \(a, kind\) nor a file"):
        load_data(path, "knd")
    with pytest.raises(ValueError, match=r"'knd' are neither .* nor a file"):
        load_data(write(tmp_path / "x.npy", X), "knd")


def test_empty_labels(tmp_path):
    path = write_rows(tmp_path / "x.csv", [["a", "kind"], [1, "u"], [2, ""]])
    with pytest.raises(ValueError, match=r"Label column 'kind' of .* has 1 empty entries"):
        load_data(path, "kind")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("u\nv\n", "There are 2 labels .* for the 7 samples"),
        ("kind\nu\nv\nu\nu\nv\nv\nu\n", "There are 8 labels .* If the first one is a header, remove it"),
        ("u\nv\nu", "transposed"),
        ("u\n\nu\n", "Line 2 of the label file .* is empty"),
        ("u,1\nv,2\n", "Line 1 of the label file .* holds 2 values"),
    ],
)
def test_label_files_that_do_not_fit(tmp_path, X, content, sentence):
    (tmp_path / "kinds.csv").write_text(content)
    with pytest.raises(ValueError, match=sentence):
        load_data(write(tmp_path / "x.npy", X), str(tmp_path / "kinds.csv"))


def test_label_files_of_other_kinds(tmp_path, X):
    (tmp_path / "kinds.json").write_text("[]")
    with pytest.raises(
        ValueError, match=r"kinds\.json must be a csv, txt or npy file with one label per line"
    ):
        load_data(write(tmp_path / "x.npy", X), str(tmp_path / "kinds.json"))


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.ones((7, 2)), r"have shape \(7, 2\); they must be one number or word per sample"),
        (np.full(7, np.nan), "must be words or finite numbers"),
        (np.ones(7, dtype=complex), "must be words or finite numbers"),
    ],
)
def test_arrays_that_are_no_labels(tmp_path, X, y, sentence):
    np.savez(tmp_path / "x.npz", X=X, kind=y)
    with pytest.raises(ValueError, match=sentence):
        load_data(tmp_path / "x.npz", "kind")


def test_arrays_nobody_can_tell_apart(tmp_path, X):
    np.savez(tmp_path / "x.npz", a=X, b=X)
    with pytest.raises(ValueError, match=r"holds a 7×3, b 7×3\. Call the matrix of samples X"):
        load_data(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz")
    with pytest.raises(ValueError, match="holds nothing"):
        load_data(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.ones(4), r"array of shape \(4,\)"),
        (np.ones((4, 2, 3)), "Reshape it to 4×6 and give image_shape="),
        (np.ones((4, 2), dtype=complex), "type complex128; they must be real numbers"),
        (np.array([["a", "b"]]), "must be real numbers"),
    ],
)
def test_arrays_that_are_no_data(tmp_path, array, sentence):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(ValueError, match=sentence):
        load_data(tmp_path / "x.npy")


def test_pickles_are_not_opened(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1, "a"]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"cannot be read as npy: .*allow_pickle"):
        load_data(tmp_path / "x.npy")


def test_matlab_73(tmp_path):
    path = tmp_path / "x.mat"
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF")
    with pytest.raises(ValueError, match=r"MATLAB file of version 7\.3.*save it with -v7"):
        load_data(path)


# Hostile files -------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("index", [-1, 10**6])
def test_a_sparse_npz_whose_indices_lead_out(tmp_path, X, form, index):
    """SciPy builds such a matrix without a look, and its first use is a segmentation fault."""
    M = sp.csr_array(X).asformat(form)
    (M.coords[1] if form == "coo" else M.indices)[1] = index
    sp.save_npz(tmp_path / "x.npz", M)
    with pytest.raises(
        ValueError, match=r"x\.npz (is a broken sparse matrix|cannot be read as \w+): .*index"
    ):
        load_data(tmp_path / "x.npz")


def test_sparse_labels_are_checked_too(tmp_path, X):
    y = sp.csc_array(np.arange(1.0, 8)[:, None])
    huge = sp.coo_array(([1.0], ([0], [0])), shape=(10**6, 10**6))
    y.indices[2] = 10**6
    scipy.io.savemat(tmp_path / "x.mat", {"X": X, "y": y})
    with pytest.raises(ValueError, match="is a broken sparse matrix"):
        load_data(tmp_path / "x.mat")
    scipy.io.savemat(tmp_path / "x.mat", {"X": X, "y": huge})
    assert load_data(tmp_path / "x.mat").y is None


def write_zeros(path, count):
    """So many zeros, packed as well as the format can."""
    X = np.zeros((count // 1000, 1000))
    if path.suffix == ".npz":
        np.savez_compressed(path, X=X)
    elif path.suffix == ".mat":
        scipy.io.savemat(path, {"X": X}, do_compression=True)
    else:
        pa.parquet.write_table(pa.table({str(j): X[:, j] for j in range(1000)}), path)
    return path


@pytest.mark.parametrize("ending", [".npz", ".mat", ".parquet"])
def test_what_unpacks_to_too_much(tmp_path, monkeypatch, ending):
    path = write_zeros(tmp_path / f"x{ending}", 10**5)
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "700000")
    told = (
        rf"x\{ending} cannot be read as {ending[1:]}: it needs \d{{6,7}} bytes of .* LOGNMF_MAX_BYTES=\d+\.$"
    )
    with pytest.raises(ValueError, match=told):
        load_data(path)
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "900000")
    assert load_data(path).X.shape == (100, 1000)


@pytest.mark.parametrize(
    "header", ["array real general\n100000 100000", "coordinate real general\n9 9 999999999"]
)
def test_an_mtx_that_promises_too_much(tmp_path, header):
    (tmp_path / "x.mtx").write_text(f"%%MatrixMarket matrix {header}\n")
    with pytest.raises(ValueError, match=r"its header promises \d+ entries, more than \d+ bytes can hold"):
        load_data(tmp_path / "x.mtx")


def test_a_sparse_matrix_of_endless_rows(tmp_path):
    (tmp_path / "x.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n999999999999 3 1\n1 1 1\n"
    )
    with pytest.raises(ValueError, match=r"x\.mtx cannot be read as mtx: it needs 7999999999992 bytes"):
        load_data(tmp_path / "x.mtx")


def test_lines_of_megabytes(tmp_path):
    path = write_rows(tmp_path / "x.csv", [[f"{i + j}.{0:01000}" for j in range(1500)] for i in range(3)])
    assert path.stat().st_size > 3 << 20
    np.testing.assert_array_equal(load_data(path).X, np.arange(3)[:, None] + np.arange(1500))


@pytest.mark.parametrize("metadata", [b"no json", b"[1]", b'{"index_columns": 3}'])
def test_odd_metadata_of_pandas(tmp_path, metadata):
    table = pa.table({"a": [1.0]}).replace_schema_metadata({b"pandas": metadata})
    pa.parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read as parquet: "):
        load_data(tmp_path / "x.parquet")


def write_parquet(path, columns, **options):
    pa.parquet.write_table(pa.table(columns), path, **options)
    return path


@pytest.fixture
def unread(monkeypatch):
    """Columns that no reader may open: what a file costs must be known from its metadata."""
    names, read_table = set(), pa.parquet.read_table

    def checked(path, **options):
        assert not names & set(options.get("columns") or names)
        return read_table(path, **options)

    monkeypatch.setattr(pa.parquet, "read_table", checked)
    return names


@pytest.mark.parametrize("role", ["feature", "label", "index"])
@pytest.mark.parametrize("kind", ["list", "struct", "bytes", "bytes of one length"])
def test_columns_of_no_use_are_never_read(tmp_path, unread, kind, role):
    bytes_of_two = pa.array([b"ab", b"cd"], pa.binary(2))
    values = {"list": [[0] * 9, []], "struct": [{"c": 1}, {"c": 2}], "bytes": [b"a", b""]}.get(
        kind, bytes_of_two
    )
    table = pa.table({"a": [1.0, 2.0], "b": values})
    if role == "index":
        table = table.replace_schema_metadata({b"pandas": b'{"index_columns": ["b"]}'})
    path = write_parquet(tmp_path / "x.parquet", table)
    unread.add("b")
    if role == "index":
        assert load_data(path).feature_names == ("a",)
    else:
        told = {"feature": "Column 'b' of .* not numbers", "label": "Label column 'b' of .* or text"}[role]
        with pytest.raises(ValueError, match=told):
            load_data(path, "b" if role == "label" else None)


ENCODINGS = {
    "once": {},
    "plain": {"use_dictionary": False},
    "prefixes": {"use_dictionary": False, "column_encoding": {"a": "PLAIN", "kind": "DELTA_BYTE_ARRAY"}},
}


@pytest.mark.parametrize("options", ENCODINGS.values(), ids=ENCODINGS)
def test_long_labels_that_are_repeated(tmp_path, monkeypatch, options):
    """A label is stored once, and every sample has it: 40 times 10 kB, four bytes for each character."""
    columns = {"a": np.ones(40), "kind": ["x" * 10_000] * 40}
    path = write_parquet(tmp_path / "x.parquet", columns, **options)
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1000000")
    with pytest.raises(ValueError, match=r"x\.parquet cannot be read as parquet: it needs 16\d{5} bytes"):
        load_data(path, "kind")
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1700000")
    assert load_data(path, "kind").y.tolist() == columns["kind"]


def test_long_prefixes_of_labels_are_not_unpacked(tmp_path, monkeypatch, unread):
    path = write_parquet(
        tmp_path / "x.parquet", {"a": np.ones(400), "kind": ["x" * 10_000] * 400}, **ENCODINGS["prefixes"]
    )
    unread.add("kind")
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1000000")
    with pytest.raises(ValueError, match=r"cannot be read as parquet: it needs \d{7} bytes of memory"):
        load_data(path, "kind")


def test_one_long_label_of_a_csv(tmp_path, monkeypatch):
    rows = [["a", "kind"], [1, "x" * 10_000], *([2, "y"] for _ in range(39))]
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1000000")
    with pytest.raises(ValueError, match=r"x\.csv cannot be read as csv: it needs 1600000 bytes of memory"):
        load_data(write_rows(tmp_path / "x.csv", rows), "kind")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("options", ENCODINGS.values(), ids=ENCODINGS)
def test_every_kind_of_text_is_a_label(tmp_path, kind, options):
    columns = {"a": [1.0, 2.0], "kind": pa.array(["u", "ü"]).cast(kind)}
    path = write_parquet(tmp_path / "x.parquet", columns, row_group_size=1, **options)
    assert load_data(path, "kind").y.tolist() == ["u", "ü"]


@pytest.mark.parametrize("labels", [[b"\xff", b"a"], [[1], [1, 2]]])
def test_label_columns_of_bytes_and_lists(tmp_path, labels):
    pa.parquet.write_table(pa.table({"a": [1.0, 2.0], "kind": labels}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"Label column 'kind' of .* labels must be numbers or text"):
        load_data(tmp_path / "x.parquet", "kind")


def test_two_columns_of_the_labels_name(tmp_path):
    path = write_rows(tmp_path / "x.csv", [["a", "kind", "kind"], [1, 2, 3]])
    with pytest.raises(ValueError, match="has 2 columns called 'kind': rename all but one"):
        load_data(path, "kind")


def test_what_is_no_array_in_an_npz(tmp_path, X):
    np.savez(tmp_path / "x.npz", X=X)
    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive:
        archive.writestr("README.txt", "text")
    np.testing.assert_array_equal(load_data(tmp_path / "x.npz").X, X)


def test_a_method_of_packing_that_nobody_knows(tmp_path, X):
    """Not "MATLAB 7.3", as for every NotImplementedError once."""
    np.savez(tmp_path / "x.npz", X=X)
    content = (tmp_path / "x.npz").read_bytes()
    place = content.rindex(b"PK\x01\x02") + 10
    (tmp_path / "x.npz").write_bytes(content[:place] + b"\x63" + content[place + 1 :])
    with pytest.raises(ValueError, match=r"x\.npz cannot be read as npz: .*compression"):
        load_data(tmp_path / "x.npz")


def test_labels_that_are_no_text(tmp_path, X):
    np.savez(tmp_path / "x.npz", X=X, y=np.array(["a", "\udcff"] + ["b"] * 5))
    with pytest.raises(ValueError, match="must be words or finite numbers"):
        load_data(tmp_path / "x.npz")
