"""Rows of arrays and files, in blocks: the same entries wherever they are."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import LogSparseNMF, in_blocks
from lognmf.blocks import RowBlocks, as_source
from lognmf.blocks.rows import even_edges, merged_edges
from planted import Planted


@pytest.fixture
def X(rng):
    return rng.random((23, 6)) * (rng.random((23, 6)) < 0.6)


def check(source, X, edges=None):
    """Whether the blocks hold ``X``, and any rows can be read."""
    assert source.shape == X.shape
    assert len(source) == len(X)
    if edges is not None:
        assert source.edges == edges
    for rows in (*map(slice, source.edges, source.edges[1:]), slice(4, 9), slice(22, 23), slice(0, 23)):
        part = source.read(rows)
        assert isinstance(part, np.ndarray) or sp.issparse(part)
        np.testing.assert_array_equal(part.toarray() if sp.issparse(part) else part, X[rows])


def test_edges():
    assert even_edges(10, 4) == (0, 4, 8, 10)
    assert even_edges(10, 4, chunk=3) == (0, 3, 6, 9, 10)
    assert even_edges(10, 4, chunk=7) == (0, 4, 8, 10)  # a chunk is read twice rather than held twice
    assert even_edges(8, 4) == (0, 4, 8)
    assert merged_edges([2, 2, 5, 1, 1, 1], 4) == (0, 4, 9, 12)
    assert merged_edges([2, 0, 2], 100) == (0, 4)


class TestArrays:
    def test_in_memory(self, X):
        check(in_blocks(X, rows=5), X, (0, 5, 10, 15, 20, 23))
        check(in_blocks(sp.csc_array(X), rows=30), X, (0, 23))
        check(in_blocks(X), X, (0, 23))

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_memmap(self, order, X, tmp_path):
        np.save(tmp_path / "X.npy", np.asarray(X, order=order))
        mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
        for source in (in_blocks(mapped, rows=5), in_blocks(tmp_path / "X.npy", rows=5)):
            check(source, X, (0, 5, 10, 15, 20, 23))
        check(in_blocks(np.vstack([X, X]).view(np.memmap)[:23], rows=5), X)  # no file behind it
        assert as_source(mapped) is None  # small

    def test_changes_of_a_private_map_are_kept(self, rng, tmp_path):
        """Pages that were given back would be read from the file again."""
        X = rng.random((3000, 4))
        np.save(tmp_path / "X.npy", X)
        private = np.load(tmp_path / "X.npy", mmap_mode="c")
        private[1234] = 7
        source = in_blocks(private, rows=1000)
        for _ in range(2):
            np.testing.assert_array_equal(source.read(slice(1000, 2000))[234], 7)

    def test_a_large_memmap_is_in_blocks(self, tmp_path, monkeypatch):
        monkeypatch.setattr("lognmf.blocks.BLOCK_BYTES", 1000)
        monkeypatch.setattr("lognmf.blocks.rows.BLOCK_BYTES", 1000)
        X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", shape=(50, 10))
        X[:] = np.arange(500).reshape(50, 10)
        assert as_source(X).edges == (0, 12, 24, 36, 48, 50)
        assert LogSparseNMF(2, random_state=0, max_iter=5).fit(X).embedding_.shape == (50, 2)

    @pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csr_matrix])
    def test_dask(self, kind, X):
        da = pytest.importorskip("dask.array", reason="dask is an extra")
        parts = [kind(X[:7]), kind(X[7:8]), kind(X[8:])]
        array = da.concatenate([da.from_array(part, chunks=part.shape, asarray=False) for part in parts])
        check(in_blocks(array, rows=7), X, (0, 7, 8, 23))
        check(in_blocks(array, rows=8), X, (0, 8, 23))
        check(as_source(array), X, (0, 23))

    def test_dask_refused(self, X):
        da = pytest.importorskip("dask.array", reason="dask is an extra")
        with pytest.raises(ValueError, match=r"features in 2 chunks.*use X\.rechunk\(\{1: -1\}\)"):
            in_blocks(da.from_array(X, chunks=(5, 3)))
        unknown = da.from_array(X, chunks=(5, 6))
        with pytest.raises(ValueError, match=r"unknown sizes: call X\.compute_chunk_sizes\(\)"):
            LogSparseNMF(2).fit(unknown[unknown[:, 0] > 0.5])
        wrong = da.from_array(X, chunks=(12, 6)).map_blocks(lambda block: block[1:], chunks=((12, 11), (6,)))
        with pytest.raises(ValueError, match=r"chunk 0 should have 12 rows, and has 11"):
            LogSparseNMF(2).fit(in_blocks(wrong, rows=12))

    def test_zarr_and_hdf5(self, X, tmp_path):
        zarr = pytest.importorskip("zarr", reason="zarr is an extra")
        check(in_blocks(zarr.array(X, chunks=(4, 6)), rows=9), X, (0, 8, 16, 23))
        h5py = pytest.importorskip("h5py", reason="h5py is an extra")
        with h5py.File(tmp_path / "X.h5", "w") as file:
            check(in_blocks(file.create_dataset("X", data=X, chunks=(4, 2)), rows=9), X, (0, 8, 16, 23))
            assert as_source(file["X"]).edges == (0, 23)

    def test_refused(self, X):
        for bad in (X.tolist(), None, "nothing.zarr"):
            with pytest.raises((TypeError, FileNotFoundError), match=r"must be a path|no file or folder"):
                in_blocks(bad)
        with pytest.raises(ValueError, match=r"two axes, samples and features; got shape \(23,\)"):
            in_blocks(X[:, 0])
        with pytest.raises(ValueError, match="rows must be an integer >= 1; got 0"):
            in_blocks(X, rows=0)
        with pytest.raises(ValueError, match="key names an array in a file"):
            in_blocks(X, key="X")


def h5ad(path, X, kind="csr_matrix"):
    """A file as AnnData writes it: the samples in the group or dataset X."""
    h5py = pytest.importorskip("h5py", reason="h5py is an extra")
    with h5py.File(path, "w") as file:
        file.create_group("obs")
        if not sp.issparse(X):
            file["X"] = X
            return path
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = kind, X.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(X, part)
    return path


class TestFiles:
    def test_hdf5(self, X, tmp_path):
        check(in_blocks(h5ad(tmp_path / "a.h5ad", X), rows=9), X, (0, 9, 18, 23))
        path = h5ad(tmp_path / "b.h5ad", sp.csr_array(X))
        check(in_blocks(path, rows=9), X, (0, 9, 18, 23))
        check(in_blocks(str(path), key="X"), X, (0, 23))
        with pytest.raises(
            ValueError,
            match="it holds X, obs, and no Y; name the array of the samples by key",
        ):
            in_blocks(path, key="Y")
        with pytest.raises(ValueError, match=r"\(csc_matrix\), and no matrix stored by rows \(csr_matrix\)"):
            in_blocks(h5ad(tmp_path / "c.h5ad", sp.csc_array(X), "csc_matrix"))
        broken = sp.csr_array(X)
        broken.indptr = broken.indptr[:-1]
        with pytest.raises(ValueError, match=r"pointers of /X do not fit its 23 rows"):
            in_blocks(h5ad(tmp_path / "d.h5ad", broken))
        (tmp_path / "e.h5").write_bytes(b"no such file")
        with pytest.raises(ValueError, match=r"e\.h5 cannot be read: "):
            in_blocks(tmp_path / "e.h5")

    def test_sparse_rows_by_their_entries(self, X, tmp_path, monkeypatch):
        """Blocks are cut by bytes, which rows of a sparse matrix have different numbers of."""
        path = h5ad(tmp_path / "a.h5ad", sp.csr_array(X))
        monkeypatch.setattr("lognmf.blocks.files.BLOCK_BYTES", 12 * 20)
        source, ends = in_blocks(path), sp.csr_array(X).indptr
        assert len(source.edges) > 3
        assert (np.diff(ends[list(source.edges)]) <= 20 + 6).all()
        check(source, X)

    def test_indices_that_lead_out_of_a_sparse_matrix(self, X, tmp_path):
        broken = sp.csr_array(X)
        broken.indices[-1] = 99
        with pytest.raises(ValueError, match=r"^Block 3 of X .*broken sparse matrix: an index lies outside"):
            LogSparseNMF(2).fit(in_blocks(h5ad(tmp_path / "a.h5ad", broken), rows=9))

    @pytest.mark.parametrize("sparse", [False, True])
    def test_zarr(self, sparse, X, tmp_path):
        zarr = pytest.importorskip("zarr", reason="zarr is an extra")
        zarr.save(str(tmp_path / "one.zarr"), X)
        check(in_blocks(tmp_path / "one.zarr", rows=9), X)
        root = zarr.open_group(str(tmp_path / "two.zarr"), mode="w")
        if sparse:
            group, csr = root.create_group("X"), sp.csr_array(X)
            group.attrs.update({"encoding-type": "csr_matrix", "shape": list(X.shape)})
            for part in ("data", "indices", "indptr"):
                group.create_array(part, data=getattr(csr, part))
        else:
            root.create_array("X", data=X, chunks=(4, 6))
        check(in_blocks(tmp_path / "two.zarr", rows=8), X, (0, 8, 16, 23))
        (tmp_path / "empty.zarr").mkdir()
        with pytest.raises(ValueError, match=r"empty\.zarr cannot be read: "):
            in_blocks(tmp_path / "empty.zarr")

    @pytest.mark.parametrize("place", ["filters", "compressors"])
    def test_pickles_in_zarr_are_not_opened(self, place, X, tmp_path):
        zarr = pytest.importorskip("zarr", reason="zarr is an extra")
        codec, path = pytest.importorskip("numcodecs").Pickle(), str(tmp_path / "X.zarr")
        options = {"shape": X.shape, "dtype": X.dtype, "zarr_format": 2, place: codec}
        array = zarr.create_array(path, **options)
        with pytest.raises(ValueError, match=r"cannot be read: .*pickle"):
            in_blocks(path)
        with pytest.raises(ValueError, match="holds pickles, and numbers are needed"):
            in_blocks(array)

    def test_words(self, tmp_path):
        h5py = pytest.importorskip("h5py", reason="h5py is an extra")
        with h5py.File(tmp_path / "X.h5", "w") as file:
            file["X"] = np.array([[b"a", b"b"]])
        with pytest.raises(ValueError, match=r"The array /X holds \|S1 values, and numbers are needed"):
            in_blocks(tmp_path / "X.h5")

    def test_parquet(self, X, tmp_path):
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        names = [f"f{j}" for j in range(6)]
        folder = tmp_path / "many.parquet"
        folder.mkdir()
        for part, rows in (("a", slice(0, 10)), ("b", slice(10, 23))):
            table = pa.table(dict(zip(names, X[rows].T, strict=True)))
            parquet.write_table(table, folder / f"{part}.parquet", row_group_size=4)
        check(source := in_blocks(folder, rows=9), X, (0, 8, 14, 23))
        model = LogSparseNMF(2, random_state=0, max_iter=5).fit(source)
        assert list(model.feature_names_in_) == names
        assert list(LogSparseNMF(2, max_iter=2).fit(in_blocks(folder)).feature_names_in_) == names
        other = tmp_path / "other.parquet"
        parquet.write_table(pa.table(dict(zip(names[::-1], X.T, strict=True))), other)
        with pytest.raises(ValueError, match="names of the features differ"):
            model.transform(in_blocks(other, rows=9))
        with pytest.raises(ValueError, match="key names an array in a zarr or HDF5 file"):
            in_blocks(other, key="X")
        parquet.write_table(pa.table({"f0": X[:, 0], "name": ["word"] * 23}), other)
        with pytest.raises(ValueError, match="columns that hold no numbers: name"):
            in_blocks(other)
        other.rename(folder / "c.parquet")
        with pytest.raises(ValueError, match="has other columns than"):
            in_blocks(folder)

    def test_parquet_with_missing_values(self, tmp_path):
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = pa.table({"a": [1, None, 3], "b": pa.array([0.5, 1.5, None], pa.float32())})
        parquet.write_table(table, tmp_path / "a.parquet")
        X = in_blocks(tmp_path / "a.parquet").read(slice(0, 3))
        np.testing.assert_array_equal(X, [[1, 0.5], [np.nan, 1.5], [3, np.nan]])

    def test_other_endings(self, tmp_path):
        (tmp_path / "X.csv").write_text("1,2")
        with pytest.raises(ValueError, match=r"X\.csv ends in none of \.npy, \.zarr, \.h5"):
            in_blocks(tmp_path / "X.csv")

    def test_a_missing_extra_is_named(self, tmp_path, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "h5py", None)
        (tmp_path / "X.h5").touch()
        with pytest.raises(ImportError, match=r'h5py is needed: run pip install "lognmf\[blocks\]"'):
            in_blocks(tmp_path / "X.h5")


class TestPlanted:
    def test_the_same_whatever_the_blocks(self):
        planted = Planted(2500, 9, 3, outliers=0.1)
        whole = planted.in_blocks().read(slice(0, 2500))
        for rows in (300, 1024, 2000):
            source = planted.in_blocks(rows=rows)
            parts = [source.read(slice(*ends)) for ends in zip(source.edges, source.edges[1:], strict=False)]
            np.testing.assert_array_equal(np.concatenate(parts), whole)
        assert (whole >= 0).all()
        assert not np.array_equal(Planted(2500, 9, 3, seed=1).in_blocks().read(slice(0, 2500)), whole)

    def test_what_was_planted_is_found(self):
        planted = Planted(1500, 30, 4, noise=0.02, outliers=0.05, density=0.9999)
        assert sp.issparse(planted.in_blocks().read(slice(3, 5)))
        model = LogSparseNMF(4, random_state=0, lam=0).fit(planted.in_blocks(rows=400))
        y = planted.labels()
        assert abs(np.mean(y == -1) - 0.05) < 0.02
        U = model.components_.T / np.linalg.norm(model.components_.T, axis=0)
        assert (planted.parts.T @ U).max(axis=1).min() > 0.98

    def test_refused(self):
        with pytest.raises(ValueError, match="n_samples must be an integer >= 1; got 0"):
            Planted(0, 3, 2)
        with pytest.raises(ValueError, match="density"):
            Planted(5, 3, 2, density=1.5)


def test_repr_is_short(X):
    assert repr(in_blocks(X)) == "RowBlocks(shape=(23, 6), dtype=dtype('float64'), edges=(0, 23))"
    assert isinstance(in_blocks(X), RowBlocks)
