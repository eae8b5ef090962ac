"""Saved models: a true round trip, no pickle, no half-written files."""

import json
import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import NMF
from sklearn.exceptions import NotFittedError

from lognmf import (
    MODELS,
    LogSparseNMF,
    PlainNMF,
    RobustLogSparseNMF,
    knn_graph,
    load_model,
    save_model,
)
from lognmf.persistence import checksum

ESTIMATORS = [LogSparseNMF, RobustLogSparseNMF]
SETTINGS = {"n_components": 3, "lam": 0.1, "max_iter": 15, "eval_every": 4, "random_state": 0}
NAMES = [f"pixel {j} α" for j in range(8)]

INPUTS = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "torch": lambda X: pytest.importorskip("torch").tensor(X),
    "torch float32": lambda X: pytest.importorskip("torch").tensor(X).float(),
    "pandas": lambda X: pytest.importorskip("pandas").DataFrame(X, columns=NAMES),
    "polars": lambda X: pytest.importorskip("polars").DataFrame(X, schema=NAMES),
}

estimators = pytest.mark.parametrize("estimator", ESTIMATORS)


@pytest.fixture
def X(rng):
    X = rng.random((30, 8)) * (rng.random((30, 8)) < 0.6)
    X[4] *= 20  # an outlier, so that the robust model has something to keep
    return X


@pytest.fixture
def model(X):
    return RobustLogSparseNMF(**SETTINGS).fit(X)


def plain(value):
    """``value`` with tensors as arrays, which is how they are kept."""
    return value.detach().numpy() if type(value).__module__.startswith("torch") else value


def assert_same(value, other):
    """Equal in value, dtype and kind."""
    value, other = plain(value), plain(other)
    if sp.issparse(value):
        assert sp.issparse(other)
        value, other = value.toarray(), other.toarray()
    assert type(value) is type(other)
    if isinstance(value, dict):
        assert list(value) == list(other)
        for name in value:
            assert_same(value[name], other[name])
    elif isinstance(value, np.ndarray):
        assert value.dtype == other.dtype
        np.testing.assert_array_equal(value, other)
    else:
        assert value == other


def assert_same_model(model, loaded):
    assert type(loaded) is type(model)
    assert_same(model.get_params(), loaded.get_params())
    fitted, other = ({n: v for n, v in vars(m).items() if n.endswith("_")} for m in (model, loaded))
    assert {"components_", "embedding_", "history_", "graph_", "n_features_in_"} <= set(fitted)
    assert set(other) == set(fitted)
    for name in fitted:
        assert_same(fitted[name], other[name])


# Round trips ---------------------------------------------------------------------------


@estimators
@pytest.mark.parametrize("kind", INPUTS)
def test_a_loaded_model_is_the_saved_one(tmp_path, X, estimator, kind):
    samples = INPUTS[kind](X)
    model = estimator(**SETTINGS).fit(samples)
    loaded = load_model(save_model(model, tmp_path / "model.npz"))
    assert_same_model(model, loaded)
    assert hasattr(loaded, "feature_names_in_") == (kind in ("pandas", "polars"))

    new = samples[3:11] if kind != "csc matrix" else samples.tocsr()[3:11]
    codes = loaded.transform(new)
    assert type(codes) is type(model.transform(new))
    assert_same(model.transform(new), codes)
    assert_same(model.inverse_transform(codes), loaded.inverse_transform(codes))
    assert list(model.get_feature_names_out()) == list(loaded.get_feature_names_out())
    if estimator is RobustLogSparseNMF:
        assert_same(model.outliers(samples), loaded.outliers(samples))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_loaded_model_knows_the_names_of_its_features(tmp_path, X, library):
    frame = INPUTS[library](X)
    loaded = load_model(save_model(LogSparseNMF(**SETTINGS).fit(frame), tmp_path / "model.npz"))
    assert loaded.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[NAMES[::-1]])


@estimators
@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array, sp.csr_array.toarray, None])
def test_a_given_graph_is_kept(tmp_path, X, estimator, form):
    graph = form and form(knn_graph(X, 3, "heat"))
    model = estimator(**SETTINGS | {"graph": graph, "lam": 0.0 if graph is None else 0.1}).fit(X)
    loaded = load_model(save_model(model, tmp_path / "model.npz"))
    assert_same_model(model, loaded)
    assert sp.issparse(loaded.graph) == sp.issparse(graph)


@estimators
@pytest.mark.parametrize(
    "settings",
    [
        {"lam": 0, "penalty": "l1", "init": "nndsvda"},
        {"n_init": 3, "tol": 0.0, "alpha": np.float64(0.1), "beta": np.float32(0.5)},
        {"n_components": np.int64(2), "random_state": None, "max_iter": 0},
    ],
)
def test_every_setting_is_kept(tmp_path, X, estimator, settings):
    model = estimator(**(SETTINGS | settings)).fit(X)
    loaded = load_model(save_model(model, tmp_path / "model.npz"))
    assert loaded.get_params() == model.get_params()
    assert_same(model.transform(X), loaded.transform(X))


def test_a_loaded_model_can_be_cloned_refitted_and_saved_again(tmp_path, X, model):
    loaded = load_model(save_model(model, tmp_path / "one.npz"))
    assert_same(clone(loaded).fit(X).embedding_, model.embedding_)
    assert_same_model(model, load_model(save_model(loaded, tmp_path / "two.npz")))


def test_what_was_trained_on_tensors_serves_arrays_too(tmp_path, X):
    torch = pytest.importorskip("torch")
    loaded = load_model(save_model(LogSparseNMF(**SETTINGS).fit(torch.tensor(X)), tmp_path / "model.npz"))
    codes = loaded.transform(X)
    assert isinstance(codes, np.ndarray)
    np.testing.assert_allclose(loaded.transform(torch.tensor(X)).numpy(), codes, rtol=1e-6, atol=1e-9)


class OwnModel(LogSparseNMF):
    """A user's model, which is not in MODELS."""


def test_a_model_of_ones_own(tmp_path, X):
    model = OwnModel(**SETTINGS).fit(X)
    path = save_model(model, tmp_path / "model.npz")
    assert_same_model(model, load_model(path, classes=[OwnModel]))
    with pytest.raises(ValueError, match=r"holds a OwnModel .*load_model\(path, classes=\[OwnModel\]\)"):
        load_model(path)
    with pytest.raises(TypeError, match="classes must be model classes of lognmf or extend one; got NMF"):
        load_model(path, classes=[NMF])


# The file ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "file"), [("m.npz", "m.npz"), ("m", "m.npz"), ("m.v1", "m.v1.npz"), ("m.npy", "m.npy.npz")]
)
@pytest.mark.parametrize("kind", [str, Path])
def test_the_file_is_where_save_says(tmp_path, model, name, file, kind):
    path = save_model(model, kind(tmp_path / name))
    assert path == tmp_path / file
    assert [p.name for p in tmp_path.iterdir()] == [file]
    assert_same_model(model, load_model(path))
    assert_same_model(model, load_model(str(path)))
    assert_same_model(model, load_model(tmp_path / name))


def test_a_path_may_be_relative(tmp_path, monkeypatch, model):
    monkeypatch.chdir(tmp_path)
    assert save_model(model, "model") == Path("model.npz")
    assert_same_model(model, load_model("model.npz"))


@pytest.mark.skipif(os.name != "posix", reason="file modes are a POSIX thing")
def test_the_file_may_be_read_by_whom_any_new_file_may(tmp_path, model):
    other = tmp_path / "other"
    other.touch()
    assert stat.S_IMODE(save_model(model, tmp_path / "m").stat().st_mode) == stat.S_IMODE(
        other.stat().st_mode
    )


@pytest.mark.parametrize("kind", INPUTS)
def test_the_file_holds_plain_arrays_and_json_only(tmp_path, X, kind):
    path = save_model(LogSparseNMF(**SETTINGS).fit(INPUTS[kind](X)), tmp_path / "model.npz")
    with np.load(path, allow_pickle=False) as file:
        assert not any(file[name].dtype.hasobject for name in file)
        assert json.loads(str(file["json"]))["class"] == "LogSparseNMF"


@pytest.mark.parametrize("point", ["writing", "naming"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("old", [True, False])
def test_an_interrupted_save_changes_nothing(tmp_path, monkeypatch, model, X, point, error, old):
    path = tmp_path / "model.npz"
    if old:
        save_model(model, path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}

    def half_written(file, **arrays):
        file.write(b"half a file")
        raise error

    def not_named(source, target, **options):
        assert Path(source).stat().st_size > 0
        raise error

    function = {"writing": (np, "savez_compressed", half_written), "naming": (os, "replace", not_named)}[
        point
    ]
    with monkeypatch.context() as patch:
        patch.setattr(*function)
        with pytest.raises(error):
            save_model(LogSparseNMF(**SETTINGS).fit(X), path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before

    save_model(LogSparseNMF(**SETTINGS).fit(X), path)
    assert type(load_model(path)) is LogSparseNMF


# What is refused -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "foreign", [NMF(), {"components_": 1}, None, LogSparseNMF], ids=lambda f: type(f).__name__
)
def test_foreign_objects_are_not_saved(tmp_path, foreign):
    with pytest.raises(TypeError, match=r"save_model takes a fitted model .*LogSparseNMF.*; got "):
        save_model(foreign, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


@estimators
def test_unfitted_models_are_not_saved(tmp_path, estimator):
    with pytest.raises(NotFittedError, match=f"{estimator.__name__} instance is not fitted yet"):
        save_model(estimator(), tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_a_random_state_that_needs_pickle_is_not_saved(tmp_path, X):
    model = LogSparseNMF(**(SETTINGS | {"random_state": np.random.RandomState(0)})).fit(X)
    with pytest.raises(
        TypeError, match=r"random_state.*RandomState.*pickle|random_state.*pickle.*RandomState"
    ):
        save_model(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_and_a_missing_file_are_said(tmp_path, model):
    with pytest.raises(FileNotFoundError, match=r"nowhere does not exist: create it first"):
        save_model(model, tmp_path / "nowhere" / "model.npz")
    for path in (tmp_path / "model.npz", tmp_path / "model", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"There is no file .*: give the path of a model"):
            load_model(path)


class Payload:
    """Makes a file when unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


@pytest.mark.parametrize(
    "name", ["json", "fitted:components_", "fitted:graph_:data", "fitted:history_:objective"]
)
def test_a_pickled_array_is_refused_unread(tmp_path, model, name):
    path, trace = save_model(model, tmp_path / "model.npz"), tmp_path / "trace"
    with np.load(path) as file:
        arrays = dict(file)
    assert name in arrays
    np.savez(path, **(arrays | {name: np.array([Payload(trace)], dtype=object)}))
    with pytest.raises(ValueError):
        load_model(path)
    assert not trace.exists()


def test_a_pickle_is_refused_unread(tmp_path):
    path, trace = tmp_path / "model.npz", tmp_path / "trace"
    path.write_bytes(pickle.dumps(Payload(trace)))
    with pytest.raises(ValueError):
        load_model(path)
    assert not trace.exists()


FOREIGN_FILES = {
    "npz": lambda path, model: np.savez(path, a=np.ones(3)),
    "json of another kind": lambda path, model: np.savez(path, json=np.array('{"a": 1}')),
    "json list": lambda path, model: np.savez(path, json=np.array("[1, 2]")),
    "broken json": lambda path, model: np.savez(path, json=np.array("{")),
    "npy": lambda path, model: path.write_bytes(_npy(path)),
    "text": lambda path, model: path.write_text("a,b\n1,2\n"),
    "empty": lambda path, model: path.touch(),
    "cut off": lambda path, model: path.write_bytes(save_model(model, path).read_bytes()[:-100]),
}


def _npy(path):
    np.save(path.with_suffix(".npy"), np.ones(3))
    return path.with_suffix(".npy").read_bytes()


@pytest.mark.parametrize("write", FOREIGN_FILES.values(), ids=FOREIGN_FILES)
def test_files_that_hold_no_model_are_refused_in_words(tmp_path, model, write):
    path = tmp_path / "model.npz"
    write(path, model)
    with pytest.raises(ValueError, match=r"model\.npz holds no model"):
        load_model(path)


@pytest.mark.parametrize("kind", ["npz", "json of another kind"])
def test_files_of_other_programs_are_not_called_damaged(tmp_path, kind):
    path = tmp_path / "model.npz"
    FOREIGN_FILES[kind](path, None)
    with pytest.raises(
        ValueError, match=r"holds no model: it is not a file that lognmf\.save_model wrote\.$"
    ):
        load_model(path)


@pytest.mark.parametrize("change", [{"format": 99}, {"class": "NMF"}])
def test_files_of_another_version_are_refused_in_words(tmp_path, model, change):
    path = save_model(model, tmp_path / "model.npz")
    with np.load(path) as file:
        arrays = dict(file)
    arrays["json"] = np.array(json.dumps(json.loads(str(arrays["json"])) | change))
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="this version of lognmf reads format 3 of PlainNMF"):
        load_model(path)


def test_any_flipped_bit_is_told_in_words_or_does_no_harm(tmp_path, X):
    """zip files check what they hold, and say so in many ways."""
    model = PlainNMF(2, max_iter=2, random_state=0).fit(X[:5])
    path = save_model(model, tmp_path / "model.npz")
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            loaded = load_model(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017
        else:
            assert_same(loaded.components_, model.components_)
            assert_same(loaded.get_params(), model.get_params())


def edit(path, change):
    """Write the file again with other content, and with the checksum that belongs to it."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name != "checksum"}
    text = json.loads(str(arrays["json"]))
    change(text, arrays)
    arrays["json"] = np.array(json.dumps(text))
    np.savez(path, checksum=checksum(arrays), **arrays)


def _fitted(name, value):
    return lambda text, arrays: text["fitted"].update({name: value})


def _param(name, value):
    return lambda text, arrays: text["params"].update({name: value})


def _array(name, value):
    return lambda text, arrays: arrays.update({name: value})


def _entry(name, value):
    def change(text, arrays):
        arrays[name].flat[1] = value

    return change


def _cut(name):
    return lambda text, arrays: arrays.update({name: arrays[name][:-1]})


HAND_MADE = {
    "a method": (_fitted("transform", 1), "'transform' is no fitted attribute of RobustLogSparseNMF"),
    "a private name": (_fitted("__dict__", 1), "'__dict__' is no fitted attribute"),
    "a missing attribute": (lambda text, arrays: text["fitted"].pop("components_"), "components_"),
    "an unknown parameter": (_param("other", 1), r"parameters \['other'\] are missing or unknown"),
    "a missing parameter": (lambda text, arrays: text["params"].pop("alpha"), r"\['alpha'\] are missing"),
    "a bad parameter": (_param("alpha", -1), "alpha must be a finite number >= 0"),
    "NaN components": (_entry("fitted:components_", np.nan), "components_ must be an array .* finite"),
    "negative codes": (_entry("fitted:embedding_", -1), r"embedding_ must .* \(30, 3\) of finite nonneg"),
    "complex codes": (_array("fitted:embedding_", np.ones((30, 3), complex)), "embedding_ must be an array"),
    "words for codes": (_fitted("embedding_", "codes"), "embedding_|str"),
    "too few samples": (_cut("fitted:outlier_share_"), r"outlier_share_ must be an array of shape \(30,\)"),
    "too few components": (_cut("fitted:components_"), "embedding_ must be an array of shape"),
    "too few features": (_fitted("n_features_in_", 7), "n_features_in_ is not what a fit sets: got 7"),
    "no objective": (_fitted("objective_", None), "objective_ is not what a fit sets: got None"),
    "negative iterations": (_fitted("n_iter_", -1), "n_iter_ is not what a fit sets"),
    "history": (_cut("fitted:history_:seconds"), "history_\\['seconds'\\] must be an array"),
    "an index of the graph": (_entry("fitted:graph_:indices", 10**6), "broken sparse matrix: an index lies"),
    "a negative one": (_entry("fitted:graph_:indices", -1), "broken sparse matrix: an index lies outside"),
    "pointers of the graph": (_entry("fitted:graph_:indptr", 10**6), "broken sparse matrix: its pointers"),
    "a crooked graph": (_entry("fitted:graph_:data", 9.0), "graph must be symmetric"),
    "a graph of NaN": (_entry("fitted:graph_:data", np.nan), "graph must hold finite"),
    "a list": (lambda text, arrays: text.update(params=[]), "list"),
    "an array that is not there": (lambda text, arrays: arrays.pop("fitted:components_"), "components_"),
}


@pytest.mark.parametrize(("change", "told"), HAND_MADE.values(), ids=HAND_MADE)
def test_a_hand_made_file_is_no_model(tmp_path, model, change, told):
    path = save_model(model, tmp_path / "model.npz")
    edit(path, change)
    with pytest.raises(ValueError, match=rf"model\.npz holds no RobustLogSparseNMF that .*: .*{told}"):
        load_model(path)


def test_a_hand_made_file_that_is_right_is_a_model(tmp_path, model):
    path = save_model(model, tmp_path / "model.npz")
    edit(path, _param("alpha", 2.0))
    assert load_model(path).alpha == 2


@pytest.mark.parametrize("change", [_entry("fitted:components_", 0.5), _param("alpha", 2.0)])
def test_changed_numbers_are_never_taken(tmp_path, model, change):
    """The zip is in order, and every number could be right."""
    path = save_model(model, tmp_path / "model.npz")
    with np.load(path) as file:
        arrays = dict(file)
    text = json.loads(str(arrays["json"]))
    change(text, arrays)
    np.savez(path, **(arrays | {"json": np.array(json.dumps(text))}))
    with pytest.raises(ValueError, match=r"model\.npz was changed since lognmf\.save_model wrote it"):
        load_model(path)


def test_what_could_not_be_loaded_is_not_saved(tmp_path, model):
    model.components_[0, 0] = np.nan
    with pytest.raises(ValueError, match="components_ must be an array"):
        save_model(model, tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())


def test_a_model_that_unpacks_to_too_much(tmp_path, model, monkeypatch):
    path = save_model(model, tmp_path / "model.npz")
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "100")
    with pytest.raises(ValueError, match=r"model\.npz cannot be loaded: it needs .*LOGNMF_MAX_BYTES=\d+\.$"):
        load_model(path)
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1 GB")
    with pytest.raises(ValueError, match=r"model\.npz cannot be loaded: LOGNMF_MAX_BYTES must be a number"):
        load_model(path)


@pytest.mark.parametrize("variable", [None, "9999999"])
def test_a_model_that_packs_too_well_is_saved_as_it_is(tmp_path, X, monkeypatch, variable):
    """Also where the variable allows more: the file may be loaded where nobody has set it."""
    monkeypatch.setattr("lognmf.reading._ALWAYS", 10_000)
    monkeypatch.setattr("lognmf.reading._RATIO", 5)
    model = PlainNMF(3, max_iter=5, random_state=0).fit(X)
    model.embedding_ = np.zeros((30_000, 3))
    with monkeypatch.context() as saving:
        saving.delenv("LOGNMF_MAX_BYTES", raising=False)
        if variable:
            saving.setenv("LOGNMF_MAX_BYTES", variable)
        path = save_model(model, tmp_path / "model.npz")
    monkeypatch.delenv("LOGNMF_MAX_BYTES", raising=False)
    assert_same(load_model(path).embedding_, model.embedding_)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("cls", MODELS.values())
def test_every_model_is_what_its_file_must_hold(tmp_path, X, cls):
    model = cls(3, max_iter=5, random_state=0).fit(X)
    loaded = load_model(save_model(model, tmp_path / "model.npz"))
    assert_same(model.components_, loaded.components_)
    assert_same(model.embedding_, loaded.embedding_)


def test_a_pipeline_is_refused_with_advice(tmp_path, X):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    pipeline = make_pipeline(Normalizer(), PlainNMF(2, max_iter=5)).fit(X)
    with pytest.raises(
        TypeError, match=r"got Pipeline\. Save its last step, pipeline\[-1\]; the others need"
    ):
        save_model(pipeline, tmp_path / "p")
    assert list(tmp_path.iterdir()) == []
    save_model(pipeline[-1], tmp_path / "p")
