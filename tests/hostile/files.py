"""Damaged and hand-made files: refused in a sentence, or read as what they hold."""

import gzip
import io
import json
import resource
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet
import scipy.sparse as sp
from PIL import Image

from hostile.cases import Case, Defect, Kind
from lognmf import RobustLogSparseNMF, load_data, load_model, normalize, save_model
from lognmf.io import DataWarning
from lognmf.persistence import checksum

X = np.random.default_rng(0).integers(1, 200, size=(12, 20)) * (np.arange(240).reshape(12, 20) % 3 > 0.0)
SPARSE = ("csr", "csc", "coo", "bsr", "dia")
CHECKED = ("model", "npz", *SPARSE, "zip", "packed csv")
"""Formats with a checksum: numbers that only damage made are never read from them."""
MOST_MEMORY = 1 << 20
"""Kilobytes by which no case may raise the memory of the process."""

Edit = Callable[[bytes, np.random.Generator], bytes]


# Good files ----------------------------------------------------------------------------


def _pictures(folder: Path, ending: str) -> list[Path]:
    files = [folder / f"{'ab'[i % 2]}/{i}.{ending}" for i in range(4)]
    for file, row in zip(files, X, strict=False):
        file.parent.mkdir(exist_ok=True)
        Image.fromarray(row.reshape(4, 5).astype(np.uint8)).save(file)
    return files


@cache
def good(kind: str) -> bytes:
    """The content of a sound file."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = folder / f"x.{ENDINGS[kind]}"
        if kind == "model":
            save_model(RobustLogSparseNMF(2, max_iter=3, random_state=0).fit(X), path)
        elif kind in SPARSE:
            sp.save_npz(
                path, sp.bsr_array(X, blocksize=(3, 5)) if kind == "bsr" else sp.csr_array(X).asformat(kind)
            )
        elif kind == "npz":
            np.savez_compressed(path, X=X, y=np.arange(12) % 3)
        elif kind == "npy":
            np.save(path, X)
        elif kind == "csv":
            np.savetxt(path, X, delimiter=",", header=",".join(f"f{j}" for j in range(20)), comments="")
        elif kind == "packed csv":
            path.write_bytes(gzip.compress(good("csv")))
        elif kind == "xlsx":
            book = openpyxl.Workbook()
            for row in [[f"f{j}" for j in range(20)], *X.tolist()]:
                book.active.append(row)
            book.save(path)
        elif kind == "parquet":
            pa.parquet.write_table(pa.table({f"f{j}": X[:, j] for j in range(20)}), path)
        elif kind == "zip":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                for file in _pictures(folder, "png"):
                    archive.write(file, file.relative_to(folder))
        else:
            with tarfile.open(path, "w:gz") as archive:
                for file in _pictures(folder, "jpg" if kind == "tar of jpg" else "tif"):
                    archive.add(file, file.relative_to(folder))
        return path.read_bytes()


ENDINGS = {
    "model": "npz",
    "npz": "npz",
    **dict.fromkeys(SPARSE, "npz"),
    "npy": "npy",
    "csv": "csv",
    "packed csv": "csv.gz",
    "xlsx": "xlsx",
    "parquet": "parquet",
    "zip": "zip",
    "tar of jpg": "tar.gz",
    "tar of tif": "tar.gz",
}


# Damage --------------------------------------------------------------------------------


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(len(content))]


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    damaged = bytearray(content)
    for place in rng.integers(len(content), size=rng.integers(1, 4)):
        damaged[place] ^= 1 << rng.integers(8)
    return bytes(damaged)


def _flip_ends(content: bytes, rng: np.random.Generator) -> bytes:
    """Bits where headers and tables of contents are."""
    end = min(len(content), 200)
    front, rest = (content[:end], content[end:]) if rng.integers(2) else (content[-end:], content[:-end])
    return _flip(front, rng) + rest if content.startswith(front) else rest + _flip(front, rng)


def _block(content: bytes, rng: np.random.Generator) -> bytes:
    place, size = rng.integers(len(content)), rng.integers(1, 600)
    fill = (bytes(size), b"\xff" * size, rng.bytes(size))[rng.integers(3)]
    return content[:place] + fill + content[place + size :]


def _swap(content: bytes, rng: np.random.Generator) -> bytes:
    """Two pieces of the file in each other's place."""
    a, b, c, d = np.sort(rng.integers(len(content), size=4))
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


def _twice(content: bytes, rng: np.random.Generator) -> bytes:
    return content + content


def _number(content: bytes, rng: np.random.Generator) -> bytes:
    """A four-byte number made huge, zero or negative: a size or an index, perhaps."""
    place = rng.integers(max(1, len(content) - 4))
    number = (0x7FFFFFFF, 0xFFFFFFFF, 0, 0x80000000, 10**6)[rng.integers(5)]
    return content[:place] + struct.pack("<I", number) + content[place + 4 :]


def _digits(content: bytes, rng: np.random.Generator) -> bytes:
    """The digits of a number, as text has them, replaced by another number."""
    places = [i for i, byte in enumerate(content) if byte in b"0123456789"]
    place = places[rng.integers(len(places))] if places else 0
    words = (b"999999999999", b"-1", b"nan", b"inf", b"1e308", b"0x1", b"", b"1 ", b"\xff", b'"', b"\n")
    return content[:place] + words[rng.integers(len(words))] + content[place + 1 :]


DAMAGES: dict[str, Edit] = {
    "none": lambda content, rng: content,
    "empty": lambda content, rng: b"",
    "cut": _cut,
    "flip": _flip,
    "flip ends": _flip_ends,
    "block": _block,
    "swap": _swap,
    "twice": _twice,
    "number": _number,
    "digits": _digits,
}
"""What chance does to a file."""


# Hand-made files -----------------------------------------------------------------------


def _members(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _zipped(members: list[tuple[str, bytes]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def _one_member(edit: Edit) -> Edit:
    """A zip in order, with damage inside one of its files."""

    def edited(content: bytes, rng: np.random.Generator) -> bytes:
        members = list(_members(content).items())
        name, data = members[place := rng.integers(len(members))]
        members[place] = name, edit(data, rng) if data else data
        return _zipped(members)

    return edited


def _other_members(content: bytes, rng: np.random.Generator) -> bytes:
    """Files of a zip exchanged, doubled, lost, renamed."""
    members = list(_members(content).items())
    (one, data), (other, more) = (members[i] for i in rng.integers(len(members), size=2))
    changes = (
        [(one, more), (other, data), *[m for m in members if m[0] not in (one, other)]],
        [*members, (one, more)],
        [m for m in members if m[0] != one],
        [*members, ("a/" * 1000 + one, data)],
        [*members, (f"../{one}", data), (f"x\n\x1b{one}", data)],
    )
    return _zipped(changes[rng.integers(len(changes))])


def _values(content: bytes, rng: np.random.Generator) -> bytes:
    """An npz in order, and a model with the right checksum, with one odd value or header inside."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    model = arrays.pop("checksum", None) is not None
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name]
    if name == "json":
        text = json.loads(str(array))
        part = text[("params", "fitted")[rng.integers(2)]]
        key = (*part, "transform", "__dict__", "other_")[rng.integers(len(part) + 3)]
        part[key] = (None, -1, float("nan"), "text", [], {}, {"kind": "csr"}, 10**30)[rng.integers(8)]
        arrays["json"] = np.array(json.dumps(text))
    elif array.dtype.kind in "fiu" and array.size and rng.integers(3):
        odd = (-1, 0, 10**6, 2**31 - 1, np.nan, np.inf)[rng.integers(6 if array.dtype.kind == "f" else 4)]
        array = array.copy()
        array.flat[rng.integers(array.size)] = odd
        arrays[name] = array
    else:
        changes = (array[..., :-1] if array.ndim else array, array.astype("U9"), array[None])
        arrays[name] = changes[rng.integers(3)]
    if model:
        arrays["checksum"] = np.array(checksum(arrays))
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def _huge(content: bytes, rng: np.random.Generator) -> bytes:
    """An array whose header promises terabytes."""
    place = content.index(b"'shape': (")
    shape = (b"99999, 99999999", b"-1, 20", b"12, 21", b"2147483647,", b"")[rng.integers(5)]
    return content[:place] + b"'shape': (" + shape + content[place + len(shape) + 10 :]


def _png_size(content: bytes, rng: np.random.Generator) -> bytes:
    """A picture whose header is in order, and promises another size."""
    sizes = [int(rng.choice([0, 1, 4, 5, 9000, 70000, 2**31 - 1])) for _ in "hw"]
    header = b"IHDR" + struct.pack(">II", *sizes) + content[24:29]
    return content[:12] + header + struct.pack(">I", zlib.crc32(header)) + content[33:]


ZIPPED = {"one flip inside": _one_member(_flip), "a cut inside": _one_member(_cut), "members": _other_members}
NPZ = {**ZIPPED, "values": _values, "huge": _one_member(_huge)}
HAND_MADE: dict[str, dict[str, Edit]] = {
    **dict.fromkeys(("model", "npz", *SPARSE), NPZ),
    "npy": {"huge": _huge},
    "zip": {**ZIPPED, "picture size": _one_member(_png_size)},
}
"""What somebody could do to a file with the right tools, by its kind."""
WAYS = {f"{way} in {kind}": (kind, way) for kind in ENDINGS for way in (*DAMAGES, *HAND_MADE.get(kind, ()))}


# The check -----------------------------------------------------------------------------


def _read(kind: str, path: Path) -> Any:
    if kind == "model":
        return load_model(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        data = load_data(path)
    normalize(data.X)  # what cannot be fitted is refused here
    return data


@cache
def _sound(kind: str) -> Any:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"x.{ENDINGS[kind]}"
        path.write_bytes(good(kind))
        return _read(kind, path)


def _plain(value: Any) -> Any:
    """Nested values for comparison: arrays as text."""
    if sp.issparse(value):
        M = sp.csr_array(value)
        value = {"shape": M.shape, "data": M.data, "indices": M.indices, "indptr": M.indptr}
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    return {name: _plain(v) for name, v in value.items()} if isinstance(value, dict) else value


def _same(kind: str, found: Any) -> bool:
    sound = _sound(kind)
    if kind == "model":
        return _plain(vars(found)) == _plain(vars(sound))
    return _plain(found.X) == _plain(sound.X) and _plain(found.y) == _plain(sound.y)


def _check(case: Case, folder: Path) -> str:
    kind, way = WAYS[case["damage"]]
    edit = DAMAGES.get(way) or HAND_MADE[kind][way]
    ending = ENDINGS[kind] if case["ending"] == "its own" else case["ending"]
    path = folder / f"x.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, of Pillow
        path.write_bytes(edit(good(kind), np.random.default_rng(case["seed"])))
        before = _peak()
        try:
            found = _read(kind, path)
        except (ValueError, FileNotFoundError) as error:
            return _refusal(error)
        finally:
            used = _peak() - before
            if used > MOST_MEMORY:
                msg = f"memory grew by {used} kB"
                raise Defect(msg)
    return _taken(kind, way, found, own=ending == ENDINGS[kind])


def _peak() -> int:
    """Kilobytes that this process and the largest of its children have needed."""
    return sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _refusal(error: Exception) -> str:
    sentence = str(error)
    ours = type(error) in (ValueError, FileNotFoundError) or type(error).__module__.startswith("lognmf")
    if not ours or "\n" in sentence or not 20 < len(sentence) < 900:
        msg = f"no sentence: {type(error).__name__}: {sentence}"
        raise Defect(msg)
    return "refused"


def _taken(kind: str, way: str, found: Any, *, own: bool) -> str:
    if _same(kind, found):
        return "intact"
    # Only "values" gives a model the checksum of its new content.
    possible = way == "values" if kind == "model" else kind not in CHECKED or way not in DAMAGES
    if not possible or (way == "none" and own):
        msg = f"other content was read from a {kind}"
        raise Defect(msg)
    numbers = (found.components_, found.embedding_) if kind == "model" else (found.X,)
    for M in numbers:
        values = M.data if sp.issparse(M) else M
        if not np.isfinite(values).all() or (values < 0).any():
            msg = f"NaN, infinity or negative numbers were read from a {kind}"
            raise Defect(msg)
    return "hand-made, and valid" if way not in DAMAGES else "other valid numbers: no checksum in the format"


FILES = Kind(
    "files",
    {
        "damage": list(WAYS),
        "ending": ["its own"] * 50 + list(ENDINGS.values()),
        "seed": range(1000),
    },
    _check,
    soak=10_000,
    short=120,
)
