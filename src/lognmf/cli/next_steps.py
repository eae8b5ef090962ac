"""Commands to go on with after a fit or a clustering, as they would be typed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_FLAGS = (
    "--transpose",
    "--normalize",
    "--no-normalize",
    "--force",
    "--tune",
    "--unit-components",
    "--free-components",
)
"""Options without a value."""

_OF_DATA = (
    "--transpose", "--normalize", "--no-normalize", "--labels", "--index", "--features", "--layer",
    "--resize", "--scale-features", "--image-shape",
)  # fmt: skip
"""Options that say how to read the data: another command needs them too."""


def next_steps(
    command: str, folder: Path, clusters: int, results: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Commands, and what each is for; ``command`` is that which wrote ``folder``."""
    _, own, *words = shlex.split(command)
    data = shlex.join(_data(words))
    k = results["parts"]
    if own == "fit":
        if results["stop_reason"] == "max_iter" and "--tune" not in words:
            more = 2 * results["iterations"]
            yield f"{_without(command, '--max-iter')} --max-iter {more}", "go on until it has converged"
        if "--tune" not in words:
            yield f"lognmf fit {data} -k {k} --tune", "choose the weights without labels"
        yield f"lognmf fit {data} -k auto", "choose the number of parts without labels"
        yield (
            f"lognmf cluster {data} -k {clusters}",
            "clusters by the neighbour graph instead of k-means on the codes",
        )
    else:
        if "grid" not in words:
            yield f"lognmf cluster {data} -k {clusters} --effort grid", "try many weights, which takes longer"
        yield f"lognmf fit {data} -k {clusters}", "parts that are fitted until they converge, and outliers"
    yield f"lognmf compare {data} -k {k}", "all methods side by side"
    where = shlex.quote(_typed(folder))
    yield f"lognmf predict {where} NEW", "clusters of the samples in a file NEW"
    yield f"lognmf transform {where} NEW", "how much of each part is in them"


def _data(words: list[str]) -> list[str]:
    """The data file among the words of a command, and the options that say how to read it."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        option = word.partition("=")[0]
        if not word.startswith("-"):
            kept.insert(0, word)
            continue
        alone = word in _FLAGS or "=" in word or (not word.startswith("--") and len(word) > 2)
        value = [] if alone else [next(rest, "")]
        if option in _OF_DATA:
            kept += [word, *value]
    return kept


def _without(command: str, option: str) -> str:
    """A command without an option and its value, and with --force, as its folder is there."""
    words = shlex.split(command)
    if option in words:
        place = words.index(option)
        del words[place : place + 2]
    return shlex.join([*(word for word in words if word != "--force"), "--force"])


def _typed(folder: Path) -> str:
    """A folder as it would be typed here."""
    near = os.path.relpath(folder)
    return str(folder) if near.startswith("..") else near
