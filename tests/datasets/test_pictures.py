"""Folders and archives of pictures."""

import os
import sys
import tarfile
import warnings

import numpy as np
import pytest
from PIL import Image

from lognmf.datasets import load_folder
from lognmf.datasets.pictures import ENDINGS


def test_one_sub_folder_a_class(tmp_path, make_pictures):
    made = make_pictures(tmp_path / "pics", {"s1": 3, "s10": 1, "s2": 12})
    found = load_folder(tmp_path / "pics")
    assert found.class_names == ("s1", "s2", "s10")
    assert found.y.tolist() == [0] * 3 + [1] * 12 + [2]
    assert found.image_shape == (4, 5)
    assert found.name == "pics"
    assert found.X.dtype == np.float64
    expected = [made["s1", i] for i in range(3)] + [made["s2", i] for i in range(12)] + [made["s10", 0]]
    np.testing.assert_array_equal(found.X.reshape(-1, 4, 5), expected)


def test_a_flat_folder_has_no_labels(tmp_path, make_pictures):
    make_pictures(tmp_path, {"": 3})
    found = load_folder(tmp_path)
    assert found.X.shape == (3, 20)
    assert found.y is None
    assert found.class_names is None
    assert repr(found) == f"<Dataset {tmp_path.name}: 3 samples of 20 features>"


@pytest.mark.parametrize("ending", [e[1:] for e in ENDINGS])
def test_every_ending(tmp_path, ending):
    name = tmp_path / f"x.{ending.upper()}"
    Image.fromarray(np.full((4, 6), 255, dtype=np.uint8)).convert("1" if ending == "pbm" else "L").save(name)
    np.testing.assert_allclose(load_folder(tmp_path).X, 255, atol=2)


def test_what_is_no_picture_is_left_out(tmp_path, make_pictures):
    make_pictures(tmp_path, {"a": 1, "b": 1, ".hidden": 1, "__MACOSX": 1, "notes": 0})
    (tmp_path / "README.txt").touch()
    (tmp_path / "a" / ".0.png").touch()
    (tmp_path / "notes" / "x.txt").touch()
    assert load_folder(tmp_path).class_names == ("a", "b")


def test_pictures_deeper_below_belong_to_the_class(tmp_path, make_pictures):
    make_pictures(tmp_path, {"a/left": 2, "a/right": 1, "b": 1})
    assert load_folder(tmp_path).y.tolist() == [0, 0, 0, 1]


def test_colours_become_grey(tmp_path):
    grey = Image.new("RGB", (3, 2), (200, 200, 200))
    for image in (grey, grey.convert("RGBA"), grey.quantize(2)):
        image.save(tmp_path / f"{image.mode}.png")
    np.testing.assert_array_equal(load_folder(tmp_path).X, np.full((3, 6), 200))


def test_sixteen_bits_are_kept(tmp_path):
    grey = np.array([[0, 300], [40_000, 65_535]], dtype=np.uint16)
    Image.fromarray(grey).save(tmp_path / "x.png")
    np.testing.assert_array_equal(load_folder(tmp_path).X.reshape(2, 2), grey)
    assert load_folder(tmp_path, resize=(1, 1)).X[0, 0] > 255


def test_a_picture_that_says_which_side_is_up(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(np.arange(6, dtype=np.uint8).reshape(2, 3)).save(tmp_path / "x.png", exif=exif)
    found = load_folder(tmp_path)
    assert found.image_shape == (3, 2)
    np.testing.assert_array_equal(found.X[0].reshape(3, 2), [[3, 0], [4, 1], [5, 2]])


@pytest.mark.parametrize("inner", ["", "faces/"])
def test_archives(tmp_path, make_pictures, inner):
    made = make_pictures(tmp_path / "in", {"a": 1, "b": 2})
    with tarfile.open(tmp_path / "my faces.tar.gz", "w:gz") as archive:
        for path in sorted((tmp_path / "in").rglob("*.png")):
            archive.add(path, f"{inner}{path.relative_to(tmp_path / 'in')}")
    found = load_folder(tmp_path / "my faces.tar.gz")
    assert found.name == "my faces"
    assert found.class_names == ("a", "b")
    np.testing.assert_array_equal(found.X[2].reshape(4, 5), made["b", 1])


def test_different_sizes(tmp_path, make_pictures):
    make_pictures(tmp_path, {"a": 1}, shape=(4, 5))
    make_pictures(tmp_path, {"b": 1}, shape=(6, 5))
    with pytest.raises(ValueError, match=r"0\.png is 4x5 \(height x width\), .*0\.png is 6x5.*--resize 4x5"):
        load_folder(tmp_path)
    found = load_folder(tmp_path, resize=(3, 2))
    assert found.image_shape == (3, 2)
    assert found.X.shape == (2, 6)
    assert 0 <= found.X.min() <= found.X.max() <= 255


@pytest.mark.parametrize("resize", [(0, 3), (3, -1), (3, 3, 3)])
def test_sizes_that_are_none(tmp_path, make_pictures, resize):
    make_pictures(tmp_path, {"": 1})
    with pytest.raises(ValueError, match="resize must be"):
        load_folder(tmp_path, resize=resize)


def test_refusals(tmp_path, make_pictures):
    with pytest.raises(FileNotFoundError, match="neither a folder nor a zip or tar archive"):
        load_folder(tmp_path / "gone")
    with pytest.raises(ValueError, match=r"holds no pictures; files that end in png, jpg"):
        load_folder(tmp_path)
    make_pictures(tmp_path, {"a": 1, "": 1})
    with pytest.raises(ValueError, match=r"holds pictures \(0\.png, …\) next to sub-folders .*\(a, …\)"):
        load_folder(tmp_path)


@pytest.mark.parametrize("content", [b"", b"no picture at all", "cut"])
def test_a_broken_picture_is_named(tmp_path, make_pictures, content):
    make_pictures(tmp_path, {"a": 2}, shape=(50, 50))
    path = tmp_path / "a" / "1.png"
    path.write_bytes(path.read_bytes()[:1000] if content == "cut" else content)
    with pytest.raises(ValueError, match=r"The picture a/1\.png cannot be read: .*\. Replace or remove it\."):
        load_folder(tmp_path)


def test_without_pillow(tmp_path, make_pictures, monkeypatch):
    make_pictures(tmp_path, {"": 1})
    monkeypatch.setattr("lognmf.datasets.pictures.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r'needs Pillow: run pip install "lognmf\[data\]"'):
        load_folder(tmp_path)


def test_pictures_that_need_too_much_memory(tmp_path, make_pictures, monkeypatch):
    make_pictures(tmp_path, {"": 3}, shape=(10, 10))
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "2399")
    with pytest.raises(ValueError, match=r"are not read: it needs 2400 bytes .*=2400, or resize them"):
        load_folder(tmp_path)
    assert load_folder(tmp_path, resize=(2, 2)).X.shape == (3, 4)
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "799")
    with pytest.raises(ValueError, match=r"picture 0\.png cannot be read: it needs 800 bytes"):
        load_folder(tmp_path, resize=(2, 2))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_no_text(tmp_path, make_pictures):
    """Old archives have names in Latin-1; the results are written as text."""
    make_pictures(tmp_path, {"a": 1, "b": 1, "c": 1})
    (tmp_path / "b").rename(tmp_path / os.fsdecode(b"caf\xe9"))
    (tmp_path / "c").rename(tmp_path / "x\n\x1b[2J")
    assert load_folder(tmp_path).class_names == ("a", r"caf\xe9", r"x\x0a\x1b[2J")
    (tmp_path / "a").rename(tmp_path / r"caf\xe9")
    with pytest.raises(ValueError, match="names that look the same when printed: rename one"):
        load_folder(tmp_path)


@pytest.mark.parametrize("ending", ENDINGS)
def test_any_damage_to_a_picture_is_told_in_words(tmp_path, ending, rng):
    path = tmp_path / f"x{ending}"
    Image.fromarray(np.full((9, 7), 255, dtype=np.uint8)).convert("1" if ending == ".pbm" else "L").save(path)
    whole = path.read_bytes()
    for _ in range(100):
        damaged = bytearray(whole)
        for place in rng.integers(min(len(whole), 300), size=3):
            damaged[place] = rng.integers(256)
        path.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of odd tags
            try:
                found = load_folder(tmp_path)
            except ValueError as error:
                assert "cannot be read: " in str(error)  # noqa: PT017
            else:
                assert np.isfinite(found.X).all()
