"""Downloads from a server of our own: complete, checked and in their place, or not there at all."""

import threading

import pytest

from lognmf.datasets import download as module
from lognmf.datasets.download import download

K = 1024


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_lands_in_its_place(server, toy, tmp_path):
    path = download(toy, tmp_path)
    assert path == tmp_path / "toy" / "toy.mat"
    assert path.read_bytes() == server.content
    assert files(tmp_path) == ["toy/toy.mat"]
    assert server.asked == [("/toy.mat", None)]


def test_what_is_there_is_not_fetched_again(server, toy, tmp_path):
    download(toy, tmp_path)
    download(toy, tmp_path)
    assert len(server.asked) == 1


def test_a_broken_connection_goes_on_where_it_stopped(server, toy, tmp_path):
    server.breaks = [96 * K, 48 * K]
    assert download(toy, tmp_path).read_bytes() == server.content
    assert [wanted for _, wanted in server.asked] == [None, f"bytes={96 * K}-", f"bytes={144 * K}-"]
    assert files(tmp_path) == ["toy/toy.mat"]


def test_a_server_without_ranges_starts_over(server, toy, tmp_path):
    server.breaks, server.ranges = [96 * K], False
    assert download(toy, tmp_path).read_bytes() == server.content
    assert files(tmp_path) == ["toy/toy.mat"]


def test_a_server_that_sends_another_range_starts_over(server, toy, tmp_path):
    server.breaks, server.wrong_range = [96 * K], True
    assert download(toy, tmp_path).read_bytes() == server.content
    assert [wanted for _, wanted in server.asked] == [None, f"bytes={96 * K}-", None]


def test_what_has_arrived_is_kept_for_the_next_call(server, toy, tmp_path):
    server.breaks = [16 * K] * module._ATTEMPTS
    with pytest.raises(
        ConnectionError, match=r"toy\.mat could not be downloaded .*the download continues where it stopped"
    ):
        download(toy, tmp_path)
    assert files(tmp_path) == ["toy/toy.mat.part"]
    server.asked.clear()
    assert download(toy, tmp_path).read_bytes() == server.content
    assert server.asked == [("/toy.mat", f"bytes={48 * K}-")]
    assert files(tmp_path) == ["toy/toy.mat"]


def test_a_part_that_is_the_whole_file(server, toy, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.mat.part").write_bytes(server.content)
    assert download(toy, tmp_path).read_bytes() == server.content


@pytest.mark.parametrize("length", [1000, 256_000, 300_000])
def test_a_part_of_another_file_is_found_out(server, toy, tmp_path, length):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.mat.part").write_bytes(b"x" * length)
    with pytest.raises(ValueError, match=r"What http.* sent is not the file .*thrown away, try again"):
        download(toy, tmp_path)
    assert files(tmp_path) == []
    assert download(toy, tmp_path).read_bytes() == server.content


def test_another_content_is_refused(server, toy, tmp_path):
    server.content = b"something else"
    with pytest.raises(ValueError, match=r"SHA-256 is f41f3f.*, expected ") as caught:
        download(toy, tmp_path)
    assert toy.sha256 in str(caught.value)
    assert files(tmp_path) == []


def test_what_was_there_stays_when_the_new_one_is_wrong(server, toy, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.mat").write_bytes(b"mine")
    server.content = b"something else"
    with pytest.raises(ValueError, match="SHA-256"):
        download(toy, tmp_path)
    assert (tmp_path / "toy" / "toy.mat").read_bytes() == b"mine"


@pytest.mark.parametrize("status", [404, 500])
def test_an_answer_that_says_no(server, toy, tmp_path, status):
    server.status = status
    with pytest.raises(ConnectionError, match=rf"/toy\.mat answered {status} .*put the file at .*toy\.mat"):
        download(toy, tmp_path)
    assert files(tmp_path) == []


def test_no_server(server, toy, tmp_path):
    server.shutdown()
    server.server_close()
    with pytest.raises(ConnectionError, match=r"could not be downloaded from .*refused") as caught:
        download(toy, tmp_path)
    assert "\n" not in str(caught.value)


def test_the_proxy_of_the_environment_is_used(server, toy, tmp_path, monkeypatch):
    from dataclasses import replace

    monkeypatch.setenv("http_proxy", server.url)
    download(replace(toy, url="http://data.invalid/toy.mat"), tmp_path)
    assert server.asked == [("http://data.invalid/toy.mat", None)]


def test_many_at_once(server, toy, tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "toy.mat.part").write_bytes(server.content[:5000])
    found = []
    threads = [threading.Thread(target=lambda: found.append(download(toy, tmp_path))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert (tmp_path / "toy" / "toy.mat").read_bytes() == server.content
    assert files(tmp_path) == ["toy/toy.mat"]
