"""Loaded sets: as the registry says, upright, and the values of the file."""

import hashlib

import numpy as np
import pytest
import scipy.io

from lognmf import datasets
from lognmf.datasets import REGISTRY
from lognmf.datasets.registry import File


def check(found, entry):
    assert isinstance(found, datasets.Dataset)
    assert found.X.shape == (entry.samples, entry.features)
    assert found.X.dtype == np.float64
    assert found.X.flags.c_contiguous
    assert found.X.min() >= 0
    assert found.y.dtype.kind == "i"
    np.testing.assert_array_equal(np.unique(found.y), np.arange(entry.classes))
    for field in ("name", "title", "image_shape", "class_names", "source", "licence", "citation"):
        assert getattr(found, field) == getattr(entry, field)


def test_digits_need_no_file():
    found = datasets.load("digits")
    check(found, REGISTRY["digits"])
    assert found.class_names == tuple("0123456789")
    assert repr(found) == "<Dataset digits: 1797 samples of 64 features, 10 classes>"


@pytest.mark.parametrize("name", datasets.NAMES)
def test_every_set(name, data_home):
    check(datasets.load(name, data_home=data_home), REGISTRY[name])


@pytest.mark.parametrize("name", ["yale", "jaffe", "ar"])
def test_pictures_are_upright(name, data_home):
    entry, found = REGISTRY[name], datasets.load(name, data_home=data_home)
    raw = scipy.io.loadmat(data_home / entry.files[0].path)[entry.arrays[0]]
    for i in (0, 7, entry.samples - 1):
        upright = raw[i].reshape(entry.image_shape, order="F")
        np.testing.assert_array_equal(found.X[i].reshape(found.image_shape), upright)


def test_the_papers_spelling_and_the_environment(data_home, monkeypatch):
    monkeypatch.setenv("LOGNMF_DATA", str(data_home))
    assert datasets.load("Yale").name == "yale"


def test_the_first_persons_of_ar(data_home):
    few, all_of_them = (datasets.load(name, data_home=data_home) for name in ("ar", "ar-100"))
    np.testing.assert_array_equal(few.X, all_of_them.X[:1300])
    np.testing.assert_array_equal(np.bincount(few.y), [26] * 50)


def test_pen_points(data_home):
    found = datasets.load("pendigits", data_home=data_home)
    assert found.points
    assert found.feature_names[:3] == ("x1", "y1", "x2")
    assert np.bincount(found.y).tolist() == [1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055]


def test_a_set_from_a_server(server, register, tmp_path):
    """From the url to upright pictures with classes from 0."""
    pictures = np.arange(4 * 6, dtype=np.uint8).reshape(4, 2, 3)
    columns = pictures.transpose(0, 2, 1).reshape(4, 6)
    scipy.io.savemat(tmp_path / "x.mat", {"fea": columns, "gnd": [[7], [7], [3], [7]]})
    server.content = (tmp_path / "x.mat").read_bytes()
    file = File("toy/x.mat", hashlib.sha256(server.content).hexdigest(), f"{server.url}/x.mat")
    entry = register(file, image_shape=(2, 3), order="columns", arrays=("fea", "gnd"))
    found = datasets.load("TOY", data_home=tmp_path / "home")
    check(found, entry)
    np.testing.assert_array_equal(found.X.reshape(4, 2, 3), pictures)
    assert found.y.tolist() == [1, 1, 0, 1]
    assert found.class_names == ("thing 1", "thing 2")


def test_a_set_that_is_an_archive_of_pictures(register, tmp_path, make_pictures):
    import zipfile

    make_pictures(tmp_path / "in", {"a": 2, "b": 2}, shape=(2, 3))
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as archive:
        for path in sorted((tmp_path / "in").rglob("*.png")):
            archive.write(path, path.relative_to(tmp_path))
    digest = hashlib.sha256((tmp_path / "toy.zip").read_bytes()).hexdigest()
    entry = register(File("toy.zip", digest), layout="pictures", image_shape=(2, 3))
    found = datasets.load("toy", data_home=tmp_path)
    check(found, entry)
    assert found.y.tolist() == [0, 0, 1, 1]
