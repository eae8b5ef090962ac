"""Archives: plain ones come out whole, and the traps of the trade are refused."""

import contextlib
import gzip
import io
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest

from lognmf.datasets.places import ENDINGS, is_archive, unpack

CONTENT = {"a.txt": b"one", "deep/er/b.bin": bytes(1000), "empty": b""}
MODES = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.bz2": "w:bz2", ".tar.xz": "w:xz"}


def pack(path, content):
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.mkdir("deep")
            for name, data in content.items():
                archive.writestr(name, data)
        return path
    mode = next(mode for ending, mode in MODES.items() if path.name.endswith(ending))
    with tarfile.open(path, mode) as archive:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def target(tmp_path):
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def refused(path, target, match):
    with pytest.raises(ValueError, match=match):
        unpack(path, target)
    assert contents(target) == {}


@pytest.mark.parametrize("ending", ENDINGS)
def test_round_trip(tmp_path, target, ending):
    path = pack(tmp_path / f"x{ending}", CONTENT)
    assert is_archive(path)
    unpack(path, target)
    assert contents(target) == CONTENT


@pytest.mark.parametrize("ending", [".zip", ".tar"])
@pytest.mark.parametrize("name", ["../out.txt", "/etc/lognmf-out.txt", "a/../../out.txt"])
def test_names_that_lead_out(tmp_path, target, ending, name):
    path = pack(tmp_path / f"x{ending}", {"fine.txt": b"", name: b"bad"})
    with contextlib.suppress(ValueError):  # refused, or unpacked below the folder
        unpack(path, target)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["target", f"x{ending}"]
    assert not Path("/etc/lognmf-out.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_in_a_tar(tmp_path, target, kind):
    info = tarfile.TarInfo("link")
    info.type, info.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.addfile(info)
    refused(tmp_path / "x.tar", target, "cannot be unpacked: 'link' .*")


def test_a_link_in_a_zip_becomes_a_file(tmp_path, target):
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    unpack(tmp_path / "x.zip", target)
    assert not (target / "link").is_symlink()


@pytest.mark.parametrize("ending", [".zip", ".tar.gz"])
def test_limits(tmp_path, target, ending, monkeypatch):
    path = pack(tmp_path / f"x{ending}", CONTENT)
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1002")
    refused(path, target, "needs 1003 bytes .* at most 1002; .* LOGNMF_MAX_BYTES=1003, or unpack it")
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1003")
    unpack(path, target)
    assert contents(target) == CONTENT


def test_a_header_that_lies_about_the_size(tmp_path, target, monkeypatch):
    path = pack(tmp_path / "x.zip", {"bomb": bytes(10_000)})
    data = path.read_bytes()
    assert data.count((10_000).to_bytes(4, "little")) == 2
    path.write_bytes(data.replace((10_000).to_bytes(4, "little"), (10).to_bytes(4, "little")))
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "100")
    with pytest.raises(ValueError, match=r"larger than it says|cannot be unpacked"):
        unpack(path, target)
    assert sum(map(len, contents(target).values())) <= 100


@pytest.mark.parametrize("ending", ENDINGS)
def test_damage(tmp_path, target, ending):
    path = tmp_path / f"x{ending}"
    path.write_bytes(b"this is no archive, whatever its name says" * 20)
    refused(path, target, r"x\.\S+ cannot be unpacked: .*\. Get it again\.")


def test_a_cut_off_archive(tmp_path, target):
    path = pack(tmp_path / "x.tar.gz", {"a": bytes(range(256)) * 1000})
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        unpack(path, target)


def test_a_folder_that_is_not_empty(tmp_path, target):
    (target / "mine").touch()
    with pytest.raises(FileExistsError, match="is not empty"):
        unpack(pack(tmp_path / "x.zip", CONTENT), target)


_read = gzip.GzipFile.read


class Zeros(io.RawIOBase):
    """So many zeros, without the memory for them."""

    def __init__(self, count):
        self.left = count

    def readable(self):
        return True

    def readinto(self, buffer):
        count = min(len(buffer), self.left)
        buffer[:count] = bytes(count)
        self.left -= count
        return count


def test_a_tar_bomb_is_left_unread(tmp_path, target, monkeypatch):
    monkeypatch.setenv("LOGNMF_MAX_BYTES", str(1 << 20))
    info = tarfile.TarInfo("bomb.png")
    info.size = 30 << 20
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.addfile(info, Zeros(info.size))
        archive.addfile(tarfile.TarInfo("behind.png"))
    read = []
    monkeypatch.setattr(
        gzip.GzipFile, "read", lambda self, size=-1: (read.append(size), _read(self, size))[1]
    )
    refused(tmp_path / "x.tar.gz", target, r"it needs \d+ bytes of memory")
    assert 0 < max(read) < 1 << 20


def test_any_flipped_byte_of_an_archive_is_told_in_words(tmp_path, target):
    for ending in ENDINGS:
        path = pack(tmp_path / f"x{ending}", {"a.txt": b"one" * 50})
        whole = path.read_bytes()
        for place in range(0, len(whole), max(1, len(whole) // 20)):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
            with tempfile.TemporaryDirectory(dir=target) as folder, contextlib.suppress(ValueError):
                unpack(path, Path(folder))
