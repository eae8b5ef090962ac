"""Files are looked for where the user says, then where the environment says, then in the cache."""

import pytest

from lognmf.datasets import places
from lognmf.datasets.registry import REGISTRY, File

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of no bytes at all


def put(folder, spelling="toy/toy.mat", content=b""):
    path = folder / spelling
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("spelling", ["toy/toy.mat", "toy.mat"])
def test_the_order_of_the_places(tmp_path, monkeypatch, here, spelling):
    file, home, data = File("toy/toy.mat", EMPTY), tmp_path / "home", tmp_path / "data"
    monkeypatch.setenv("LOGNMF_DATA", str(data))
    assert places.locate(file, home) is None
    for folder in (here, data, home):
        path = put(folder, spelling)
        assert places.locate(file, home) == path


def test_a_wrong_hash_is_refused_with_both(tmp_path):
    path = put(tmp_path, content=b"x")
    with pytest.raises(ValueError, match=r"SHA-256 is 2d711642.*, expected e3b0c44.*\. Remove or replace it"):
        places.locate(File("toy/toy.mat", EMPTY), tmp_path)
    assert path.exists()


def test_downloads_go_to_the_cache_or_to_the_folder_given(server, toy, register, tmp_path, here):
    entry = register(toy)
    assert places.get(entry, tmp_path / "mine") == [tmp_path / "mine" / "toy" / "toy.mat"]
    assert places.get(entry) == [here / "toy" / "toy.mat"]
    assert places.get(entry) == [here / "toy" / "toy.mat"]
    assert len(server.asked) == 2


@pytest.mark.parametrize("name", ["ar", "ar-100", "jaffe", "jaffe-crop"])
def test_data_whose_owners_must_be_asked(name, here):
    entry = REGISTRY[name]
    with pytest.raises(FileNotFoundError) as caught:
        places.get(entry)
    told = str(caught.value)
    assert entry.ask in told
    assert entry.files[0].sha256 in told
    assert f" at {here / entry.files[0].path}," in told
    assert not here.exists()


def test_the_sentence_names_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("LOGNMF_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=rf" at {tmp_path / 'ar' / 'ar.mat'}, or set LOGNMF_DATA"):
        places.get(REGISTRY["ar"])


def test_without_pooch(monkeypatch, toy, register, tmp_path):
    monkeypatch.setattr(places, "find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match=r'needs pooch: run pip install "lognmf\[data\]", or put'):
        places.get(register(toy))
    monkeypatch.delenv("LOGNMF_CACHE")
    assert places.cache() is None
    assert list(places.folders()) == []
    put(tmp_path)
    assert places.get(register(File("toy/toy.mat", EMPTY)), tmp_path) == [tmp_path / "toy" / "toy.mat"]


def test_the_usual_cache(monkeypatch):
    monkeypatch.delenv("LOGNMF_CACHE")
    assert places.cache().name == "lognmf"
