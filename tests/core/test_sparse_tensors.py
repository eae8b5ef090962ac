"""Sparse tensors as data: the same as SciPy's matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS, NMFClustering, choose_components, fit_grid, normalize, to_device
from lognmf.core.arrays import to_numpy
from lognmf.core.data import InMemory
from lognmf.core.matrices import is_csr_tensor, on_cpu, rows_of, squared_row_norms
from problems import pattern, samples

torch = pytest.importorskip("torch", reason="torch is an extra")
sparse_tensors = pytest.importorskip("lognmf.core.torch.sparse")


@pytest.fixture(params=["torch-cpu", "torch-cuda"])
def device(request):
    return str(pattern(request.param).device)


@pytest.fixture
def X(rng):
    X = samples(rng, 40, 15, density=0.3)
    X[7] = 0
    return sp.csr_array(X)


def test_there_and_back(X, device):
    there = to_device(X, device, "float64")
    assert is_csr_tensor(there)
    assert there.col_indices().dtype == torch.int32
    np.testing.assert_array_equal(on_cpu(there).toarray(), X.toarray())


def test_what_torch_lacks(X, device, rng):
    there, dense = to_device(X, device, "float64"), X.toarray()
    np.testing.assert_array_equal(on_cpu(sparse_tensors.transposed(there)).toarray(), dense.T)
    np.testing.assert_allclose(to_numpy(squared_row_norms(there)), (dense**2).sum(axis=1), atol=1e-15)
    np.testing.assert_allclose(to_numpy(sparse_tensors.squared_norms(there, 2.0)), (dense**2).sum(axis=1) / 4)
    index = np.array([3, 7, 7, 39, 0])
    rows = sparse_tensors.dense_rows(there, torch.as_tensor(index, device=device))
    np.testing.assert_array_equal(to_numpy(rows), dense[index])
    np.testing.assert_array_equal(on_cpu(rows_of(there, index)).toarray(), dense[index])


def test_products_norms_and_rows_in_a_unit(X, device, rng):
    here, there = (InMemory(M, unit=3.0) for M in (X, to_device(X, device, "float64")))
    U, V = rng.random((15, 2, 3)), rng.random((40, 2, 3))
    on = {"device": device}
    np.testing.assert_allclose(to_numpy(there.times(torch.as_tensor(U, **on))), here.times(U), atol=1e-14)
    np.testing.assert_allclose(to_numpy(there.t_times(torch.as_tensor(V, **on))), here.t_times(V), atol=1e-14)
    np.testing.assert_allclose(to_numpy(there.squared_norms), here.squared_norms, atol=1e-15)
    some = slice(5, 9)
    np.testing.assert_allclose(to_numpy(there.dense_rows(some)), here.dense_rows(some))


def test_entries_out_of_order_and_twice(device):
    ends, columns = torch.tensor([0, 3, 3, 5]), torch.tensor([2, 0, 2, 1, 0])
    values = torch.tensor([1.0, 2.0, 4.0, 3.0, 5.0], dtype=torch.float64)
    given = sparse_tensors.csr_tensor(*(part.to(device) for part in (ends, columns, values)), (3, 4))
    tidy = sparse_tensors.canonical(given)
    np.testing.assert_array_equal(to_numpy(tidy.values()), [2, 5, 5, 3])
    np.testing.assert_array_equal(to_numpy(tidy.to_dense()), [[2, 0, 5, 0], [0] * 4, [5, 3, 0, 0]])
    assert sparse_tensors.canonical(tidy) is tidy
    dense = MODELS["NMF"](2, random_state=0, max_iter=5).fit(tidy.to_dense())
    assert MODELS["NMF"](2, random_state=0, max_iter=5).fit(given).objective_ == pytest.approx(
        dense.objective_
    )


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.spec.sparse])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_model(name, X, device):
    model = MODELS[name](3, max_iter=20, random_state=0)
    twin = MODELS[name](3, max_iter=20, random_state=0).fit(X)
    there = to_device(X, device, "float64")
    model.fit(there)
    assert model.objective_ == pytest.approx(twin.objective_, rel=1e-8)
    np.testing.assert_allclose(to_numpy(model.transform(there)), twin.transform(X), atol=1e-7)


def test_what_is_refused(X, device):
    there = to_device(X, device, "float64")
    with pytest.raises(TypeError, match=r"weights need dense data .* X\.to_dense\(\)"):
        MODELS["WNMF"](2).fit(there, weights=X.toarray() > 0)
    with pytest.raises(TypeError, match=r"CSR format; got layout torch\.sparse_coo.*to_sparse_csr"):
        MODELS["NMF"](2).fit(there.to_sparse_coo())
    with pytest.raises(ValueError, match=r"kullback-leibler.*dense tensor or a SciPy sparse matrix"):
        MODELS["NMF"](2, loss="kullback-leibler").fit(there)
    bad = X.copy()
    bad.data[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        MODELS["NMF"](2).fit(to_device(bad, device))
    bad.data[3] = -1
    with pytest.raises(ValueError, match="Negative values"):
        MODELS["NMF"](2).fit(to_device(bad, device))


def test_grid_and_clusterer(X, device):
    grid = {"alpha": [0.0, 0.1]}
    rows = [fit_grid("LS-NMF", X, grid, device=d, dtype="float64", max_iter=5).rows for d in (None, device)]
    for one, other in zip(*rows, strict=True):
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-8)
    model = NMFClustering(3, random_state=0, device=device).fit(X)
    assert len(model.labels_) == X.shape[0]
    np.testing.assert_array_equal(model.predict(to_device(X, device, "float64")), model.labels_)


def test_empty_data(device):
    model = MODELS["NMF"](2, random_state=0, max_iter=3).fit(
        to_device(sp.csr_array((5, 4)), device, "float64")
    )
    assert model.reconstruction_err_ == 0


def test_samples_of_unit_norm(X, device):
    for size in (1.0, 1e-170, 1e170):
        there = normalize(to_device(size * X, device, "float64"))
        np.testing.assert_allclose(on_cpu(there).toarray(), normalize(size * X).toarray(), atol=1e-15)


def test_number_of_components(X, device):
    found = [choose_components(M, [2, 3], random_state=0) for M in (X, to_device(X, device, "float64"))]
    assert found[0].best == found[1].best


def test_data_for_a_device_are_checked():
    pandas = pytest.importorskip("pandas", reason="pandas is for tests")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [0.0, 3.0]})
    np.testing.assert_array_equal(to_numpy(to_device(table, "cpu")), table.to_numpy())
    with pytest.raises(TypeError, match="X must hold numbers; got"):
        to_device([["one", "two"]], "cpu")
    with pytest.raises(ValueError, match='dtype must be "float32" or "float64"; got \'float16\''):
        to_device([[1.0]], "cpu", "float16")


def test_a_device_of_torch(rng):
    torch = pytest.importorskip("torch")
    X = rng.random((8, 3))
    assert to_device(X, torch.device("cpu")).device.type == "cpu"
    rows = fit_grid("NMF", X, {"n_components": [2]}, device=torch.device("cpu"), max_iter=2).rows
    assert len(rows) == 1
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="sees no GPU here"):
            to_device(X, torch.device("cuda"))
    with pytest.raises(TypeError, match="device must be a name of torch"):
        to_device(X, 3.5)
