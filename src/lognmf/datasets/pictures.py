"""Your own pictures: a folder with one sub-folder per class, or none, or an archive of such a folder."""

from __future__ import annotations

import os
import re
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from lognmf.datasets.places import is_archive, unpack
from lognmf.datasets.registry import Dataset
from lognmf.parameters import check_integer
from lognmf.reading import check_unpacked, printable, reason, short

ENDINGS = (".png", ".jpg", ".jpeg", ".pgm", ".ppm", ".pbm", ".pnm", ".bmp", ".gif", ".tif", ".tiff", ".webp")
"""How the names of pictures end."""

_WIDE_MODES = ("I", "I;16", "I;16B", "I;16L", "F")
"""Pillow's modes with more than 8 bits per pixel: not converted, because 8-bit grey would truncate them."""


def load_folder(path: str | os.PathLike[str], *, resize: tuple[int, int] | None = None) -> Dataset:
    """Load the pictures in a folder or an archive as grey values.

    Parameters
    ----------
    path : path
        A folder, or a zip or tar archive of one. If it has sub-folders, each is a class that holds
        all pictures below it; else there are no labels. Names are sorted naturally, 2 before 10.
        Hidden files, and files without the ending of a picture, are skipped.
    resize : (int, int), optional
        Height and width that every picture is resized to. By default all must have the same size.

    Returns
    -------
    Dataset
        ``X`` with one picture per row: ``X[i].reshape(image_shape)`` is upright. Colours
        become grey; values are those of the files, mostly 0 to 255.

    Raises
    ------
    ValueError
        If no picture is found, or sizes differ and ``resize`` is not given.

    See Also
    --------
    load : Loads data sets by name.

    Examples
    --------
    >>> from lognmf import datasets
    >>> from PIL import Image
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("L", (3, 2)).save(f"{folder}/1.png")
    ...     datasets.load_folder(folder).image_shape
    (2, 3)
    """
    path = Path(path)
    if resize is not None:
        if len(resize) != 2:
            msg = f"resize must be height and width, like (32, 32); got {resize!r}."
            raise ValueError(msg)
        for side in resize:
            check_integer("resize", side, 1)
    if path.is_dir():
        return _load(path, path.resolve().name, str(path), resize)
    if not path.is_file() or not is_archive(path):
        msg = f"{path} is neither a folder nor a zip or tar archive: give one with pictures in it."
        raise FileNotFoundError(msg)
    with tempfile.TemporaryDirectory() as temporary:
        unpack(path, Path(temporary))
        name = re.sub(r"(\.tar)?\.\w+$", "", path.name)
        return _load(Path(temporary), name, str(path), resize)


def _load(folder: Path, name: str, given: str, resize: tuple[int, int] | None) -> Dataset:
    """The pictures of a folder; ``given`` is the path that the user gave, for messages."""
    if find_spec("PIL") is None:
        msg = 'Reading pictures needs Pillow: run pip install "lognmf[data]".'
        raise ModuleNotFoundError(msg)
    classes = _classes(folder, given)
    pictures = [(picture, label) for label, members in enumerate(classes.values()) for picture in members]
    X: np.ndarray | None = None
    shape = resize
    for i, (picture, _) in enumerate(pictures):
        grey = _grey(picture, folder, resize)
        shape = shape or grey.shape
        if grey.shape != shape:
            names = [short(str(path.relative_to(folder))) for path in (pictures[0][0], picture)]
            sizes = ["x".join(map(str, size)) for size in (shape, grey.shape)]
            msg = (
                f"The pictures of {given} have different sizes: {names[0]} is {sizes[0]} (height x width), "
                f"{names[1]} is {sizes[1]}. Resize them: --resize {sizes[0]} on the command line, "
                f"resize=({shape[0]}, {shape[1]}) in Python."
            )
            raise ValueError(msg)
        if X is None:
            _check_memory(given, [path for path, _ in pictures], grey.size)
            X = np.empty((len(pictures), grey.size))
        X[i] = grey.reshape(-1)
    labelled = list(classes) != [""]
    class_names = tuple(map(printable, classes))
    if len(set(class_names)) < len(class_names):
        msg = f"Two folders of {given} have names that look the same when printed: rename one of them."
        raise ValueError(msg)
    return Dataset(
        X=X,
        y=np.array([label for _, label in pictures], dtype=np.intp) if labelled else None,
        name=printable(name),
        title=printable(name),
        image_shape=shape,
        class_names=class_names if labelled else None,
        source=printable(given),
    )


def _check_memory(given: str, pictures: list[Path], pixels: int) -> None:
    """Refuse pictures whose grey values need far more memory than their files."""
    try:
        check_unpacked(8 * pixels * len(pictures), sum(picture.stat().st_size for picture in pictures))
    except ValueError as error:
        msg = f"The pictures of {given} are not read: {error}, or resize them."
        raise ValueError(msg) from None


def _classes(folder: Path, given: str) -> dict[str, list[Path]]:
    """Pictures by class; a flat folder has the single class "" ."""
    loose, below = _pictures(folder), [path for path in _visible(folder) if path.is_dir()]
    if not loose and len(below) == 1:  # a single sub-folder stands for its content
        return _classes(below[0], given)
    classes = {sub.name: _pictures(sub, "**/*") for sub in below}
    classes = {name: members for name, members in classes.items() if members}
    if loose and classes:
        msg = (
            f"{given} holds pictures ({loose[0].name}, …) next to sub-folders with pictures "
            f"({next(iter(classes))}, …): put every picture into the sub-folder of its class, or all into "
            "one folder."
        )
        raise ValueError(msg)
    if not (loose or classes):
        kinds = ", ".join(ending.lstrip(".") for ending in ENDINGS)
        msg = f"{given} holds no pictures; files that end in {kinds} are read."
        raise ValueError(msg)
    return classes or {"": loose}


def _pictures(folder: Path, pattern: str = "*") -> list[Path]:
    visible = _visible(folder, pattern)
    return [path for path in visible if path.suffix.lower() in ENDINGS and path.is_file()]


def _visible(folder: Path, pattern: str = "*") -> list[Path]:
    """The paths that match ``pattern`` and are not hidden, in natural order."""
    parts = {path: path.relative_to(folder).parts for path in folder.glob(pattern)}
    visible = (path for path in parts if not any(p.startswith(".") or p == "__MACOSX" for p in parts[path]))
    return sorted(visible, key=lambda path: ([_natural_order(part) for part in parts[path]], parts[path]))


def _natural_order(name: str) -> list[Any]:
    """Sort key: numbers in names by their value."""
    # re.split gives text, number, text, …: like is compared with like.
    return [int(piece) if piece.isdecimal() else piece.lower() for piece in re.split(r"(\d+)", name)]


def _grey(picture: Path, folder: Path, resize: tuple[int, int] | None) -> np.ndarray:
    """Grey values (height, width) of a picture."""
    from PIL import Image, ImageOps

    try:
        with Image.open(picture) as opened:
            check_unpacked(8 * opened.width * opened.height, picture.stat().st_size)
            image = ImageOps.exif_transpose(opened)
            if image.mode not in _WIDE_MODES:
                image = image.convert("L")
            elif resize is not None:
                image = image.convert("F")  # Pillow resizes no other wide mode
            if resize is not None:
                height, width = resize
                image = image.resize(
                    (width, height),
                    Image.Resampling.LANCZOS if image.mode == "L" else Image.Resampling.BILINEAR,
                )
            return np.asarray(image, dtype=np.float64)
    except Exception as error:  # damaged pictures fail in many ways
        name = short(str(picture.relative_to(folder)))
        msg = f"The picture {name} cannot be read: {reason(error)}. Replace or remove it."
        raise ValueError(msg) from error
