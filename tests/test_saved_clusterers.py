"""A clusterer in a file predicts as before; a damaged or odd file is refused."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import (
    LogSparseNMF,
    NMFClustering,
    PlainNMF,
    SemiNMF,
    in_blocks,
    load_model,
    normalize,
    save_model,
)
from lognmf.persistence import checksum

KINDS = {
    "array": np.asarray,
    "sparse": sp.csr_array,
    "float32": lambda X: X.astype(np.float32),
    "pandas": lambda X: pytest.importorskip("pandas").DataFrame(X, columns=list("abcdef")),
    "blocks": lambda X: in_blocks(X, rows=25),
}
SETTINGS = {
    "defaults": {},
    "number chosen": {"n_clusters": "auto"},
    "estimator": {"model": LogSparseNMF(2, alpha=0.1, max_iter=5)},
    "signed": {"model": "Semi-NMF"},
    "plain": {"model": "NMF"},
}


class Mine(PlainNMF):
    """A model of a user."""


@pytest.fixture
def X(rng):
    return normalize(np.repeat(np.eye(3, 6), 20, axis=0) + 0.2 * rng.random((60, 6)))


@pytest.fixture
def path(tmp_path, X):
    return save_model(NMFClustering(3, random_state=0).fit(X), tmp_path / "clusters")


def assert_same(clusterer, loaded, X):
    assert type(loaded) is NMFClustering
    np.testing.assert_array_equal(loaded.labels_, clusterer.labels_)
    np.testing.assert_array_equal(loaded.embedding_, clusterer.embedding_)
    np.testing.assert_array_equal(loaded.components_, clusterer.components_)
    np.testing.assert_array_equal(loaded.predict(X), clusterer.predict(X))
    np.testing.assert_array_equal(loaded.model_.transform(X), clusterer.model_.transform(X))
    assert loaded.rows_ == clusterer.rows_
    assert loaded.n_clusters_ == clusterer.n_clusters_
    assert loaded.top_features(2) == clusterer.top_features(2)
    assert repr(loaded) == repr(clusterer)
    assert {name for name in vars(loaded) if name.endswith("_")} == {
        name for name in vars(clusterer) if name.endswith("_")
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_samples(tmp_path, X, kind):
    given = KINDS[kind](X)
    clusterer = NMFClustering(3, random_state=0).fit(given)
    loaded = load_model(save_model(clusterer, tmp_path / "clusters"))
    new = in_blocks(X[::3], rows=9) if kind == "blocks" else given[::3]
    assert_same(clusterer, loaded, new)
    if kind == "blocks":
        np.testing.assert_array_equal(loaded.sample_, clusterer.sample_)
    else:
        assert loaded.sample_ is None


@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_settings(tmp_path, X, options):
    clusterer = NMFClustering(**{"n_clusters": 3, "random_state": 0, **options})
    loaded = load_model(save_model(clusterer.fit(X), tmp_path / "clusters"))
    assert_same(clusterer, loaded, X - 0.1 if options.get("model") == "Semi-NMF" else X)
    np.testing.assert_array_equal(loaded.fit(X).labels_, clusterer.labels_)


def test_a_model_of_your_own_must_be_named(tmp_path, X):
    clusterer = NMFClustering(3, model=Mine(2, max_iter=5), random_state=0).fit(X)
    path = save_model(clusterer, tmp_path / "clusters")
    with pytest.raises(
        ValueError, match=r"its model is a Mine, so pass that class: load_model\(path, classes=\[Mine\]"
    ):
        load_model(path)
    assert_same(clusterer, load_model(path, classes=[Mine]), X)


def test_what_is_not_fitted_or_needs_pickle_is_refused(tmp_path, X):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save_model(NMFClustering(3), tmp_path / "clusters")
    with pytest.raises(TypeError, match="random_state is a RandomState, which needs pickle"):
        save_model(NMFClustering(3, random_state=np.random.RandomState(0)).fit(X), tmp_path / "clusters")
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_refused(path):
    whole = path.read_bytes()
    for place in range(40, len(whole), len(whole) // 40):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            loaded = load_model(path)
        except ValueError:
            continue
        assert isinstance(loaded, NMFClustering), "a bit that the zip format does not use"
    path.write_bytes(whole[:-50])
    with pytest.raises(ValueError, match="holds no model"):
        load_model(path)


def changed(path, change, *, checked=True):
    """The file with other arrays or another text, and the checksum of these if ``checked``."""
    with np.load(path) as file:
        arrays = dict(file)
    old = arrays.pop("checksum")
    text = json.loads(str(arrays["json"]))
    change(text, arrays)
    arrays["json"] = np.array(json.dumps(text))
    np.savez(path, **arrays, checksum=np.array(checksum(arrays)) if checked else old)


def put(name, value):
    return lambda text, arrays: arrays.update({name: value(arrays[name])})


def say(part, name, value):
    return lambda text, arrays: text[part].update({name: value})


ODD = {
    "labels beyond the clusters": put("fitted:labels_", lambda old: old + 10**9),
    "negative labels": put("fitted:labels_", lambda old: old - 1),
    "labels that are no whole numbers": put("fitted:labels_", lambda old: old / 2),
    "labels of fewer samples": put("fitted:labels_", lambda old: old[:-1]),
    "codes of another shape": put("fitted:embedding_", lambda old: old[:, 1:]),
    "known labels beyond the clusters": put("fitted:_known:1", lambda old: old + 10**9),
    "fewer known labels": put("fitted:_known:1", lambda old: old[1:]),
    "known samples with NaN": put("fitted:_known:0", lambda old: np.where(old > 0.5, np.nan, old)),
    "known samples of fewer features": put("fitted:_known:0", lambda old: old[:, 1:]),
    "known samples in words": put("fitted:_known:0", lambda old: old.astype(str)),
    "no known samples": lambda text, arrays: arrays.update(
        {"fitted:_known:0": arrays["fitted:_known:0"][:0], "fitted:_known:1": arrays["fitted:_known:1"][:0]}
    ),
    "nothing known": lambda text, arrays: text["fitted"].pop("_known"),
    "a model with negative parts": put("fitted:model_:fitted:components_", lambda old: -old),
    "no model": lambda text, arrays: text["fitted"].pop("model_"),
    "a clusterer for a model": lambda text, arrays: text["fitted"]["model_"].update(
        {"class": "NMFClustering"}
    ),
    "another number of clusters": say("fitted", "n_clusters_", 7),
    "another number of features": say("fitted", "n_features_in_", 7),
    "rows that are none": say("fitted", "rows_", {"kind": "tuple", "items": [1]}),
    "an unknown attribute": say("fitted", "predict", 1),
    "a missing attribute": lambda text, arrays: text["fitted"].pop("rows_"),
    "an unknown parameter": say("params", "colour", 1),
    "a bad parameter": say("params", "n_neighbors", "much"),
    "an unknown estimator": say("params", "model", "os.system"),
    "an estimator of a bad class": say(
        "params", "model", {"kind": "estimator", "class": "Popen", "params": {}, "fitted": {}}
    ),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_odd_values_are_refused_even_with_the_right_checksum(path, change):
    changed(path, change)
    with pytest.raises(ValueError, match="holds no NMFClustering that this version of lognmf can use"):
        load_model(path)


def test_changed_values_are_noticed(path):
    changed(path, put("fitted:_known:0", lambda old: 2 * old), checked=False)
    with pytest.raises(ValueError, match="was changed since"):
        load_model(path)


def test_signed_samples_stay_signed(tmp_path, X):
    clusterer = NMFClustering(3, model=SemiNMF(3, max_iter=5), random_state=0).fit(X - 0.3)
    assert_same(clusterer, load_model(save_model(clusterer, tmp_path / "clusters")), X - 0.3)
