"""Files from elsewhere: limits, arrays that hold what they promise, names fit to print."""

import io
import warnings
import zipfile

import numpy as np
import pytest

from lognmf.reading import check_npy, check_npz, check_unpacked, most_bytes, printable

DICT = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"


def npy(header, values=b""):
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + values


def test_the_limit_follows_the_file_or_the_variable(monkeypatch):
    monkeypatch.delenv("LOGNMF_MAX_BYTES", raising=False)
    assert most_bytes(10) == 2**28
    assert most_bytes(2**30) == 100 * 2**30
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1000")
    check_unpacked(1000, 10)
    with pytest.raises(ValueError, match=r"^it needs 1001 bytes of memory.* LOGNMF_MAX_BYTES=1001$"):
        check_unpacked(1001, 10)
    monkeypatch.setenv("LOGNMF_MAX_BYTES", "1 GB")
    with pytest.raises(ValueError, match="LOGNMF_MAX_BYTES must be a number of bytes; got '1 GB'"):
        most_bytes(10)


@pytest.mark.parametrize(
    "content",
    [
        npy(DICT % "(1000000, 1000000)", bytes(80)),
        npy(DICT % "(3,)", bytes(23)),
        npy(DICT % "(3,)", bytes(25)),
        npy(DICT % "(-3, -1)", bytes(24)),
        npy("-" * 9000 + "1"),
        npy("(" * 9000),
        npy("[]"),
    ],
    ids=["huge", "cut off", "too long", "negative", "a MemoryError of Python", "a TokenError", "no dict"],
)
def test_arrays_that_do_not_hold_what_they_promise(content):
    with pytest.raises(ValueError, match=r"^its header (promises|cannot be read)"):
        check_npy(io.BytesIO(content), len(content))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_sound_arrays(version, shape):
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that old NumPy cannot read version 3
        np.lib.format.write_array(stream, np.zeros(shape), version=version)
    size = stream.tell()
    stream.seek(0)
    check_npy(stream, size)


def test_the_same_array_twice(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", npy(DICT % "(0,)"))
        archive.writestr("X", b"")
    with pytest.raises(ValueError, match="the name 'X' comes twice"):
        check_npz(tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ärger 表 \u3000 a\u200db", "Ärger 表 \u3000 a\u200db"),
        ("a\nb\x1b[2J", r"a\x0ab\x1b[2J"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), r"caf\xe9"),
        ("\ud800\u2028", r"\ud800\u2028"),
    ],
)
def test_names_fit_to_print(name, shown):
    assert printable(name) == shown
    printable(name).encode()


@pytest.mark.parametrize("comment", [b"", b"a word at the end"])
def test_a_zip_that_lost_a_member(tmp_path, comment):
    """One flipped bit turns the next entry of the table of contents into a remark on this one."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for name in "Xy":
            archive.writestr(f"{name}.npy", npy(DICT % "(0,)"))
        archive.comment = comment
    check_npz(tmp_path / "x.npz")
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 32] = 46 + len("y.npy")
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ValueError, match="it should hold 2 files, and its table of contents lists 1"):
        check_npz(tmp_path / "x.npz")
