"""Commands to go on with after a fit or a clustering, as they would be typed: those that take its data."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from lognmf.models import MODELS

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

_OF_NEW = ("--transpose", "--features", "--layer", "--resize")
"""Options that say how to read new samples as well; the rest is known of the fit."""

_OF_DATA = (
    *_OF_NEW,
    "--normalize",
    "--no-normalize",
    "--labels",
    "--index",
    "--scale-features",
    "--image-shape",
)
"""Options that say how to read the data: another command needs them too."""

_K = ("-k", "--k", "--components")
_PLACE = ("--out", "--force", "--tune")
_CHOSEN = ("--alpha", "--beta", "--gamma", "--lam", "--init", "--max-iter", "--restarts")
"""What --tune chooses, or takes for something else."""

_ENTRIES = 20
"""Known entries that -k auto needs."""


@dataclass(frozen=True)
class Kind:
    """What commands and models must know of data to take or refuse them."""

    missing: bool = False
    signed: bool = False
    blocks: bool = False  # X is read in blocks of rows
    several: bool = True  # there are several numbers of parts to choose from

    @classmethod
    def of(cls, X: Any) -> Kind:
        """The kind of the samples X (n, p) of a fit."""
        if not (isinstance(X, np.ndarray) or sp.issparse(X)):
            return cls(blocks=True)
        values = X.data if sp.issparse(X) else X
        missing, lowest = int(np.isnan(values).sum()), np.fmin.reduce(values, axis=None, initial=0)
        several = min(X.shape) > 2 and X.shape[0] * X.shape[1] - missing >= _ENTRIES
        return cls(missing > 0, bool(lowest < 0), several=several)

    def suits(self, model: Any) -> bool:
        """Whether a model takes such data."""
        takes = (model.spec.takes_missing(model) or not self.missing) and (
            model.spec.signed or not self.signed
        )
        return takes and (model.spec.blocks or not self.blocks)


class Typed:
    """A command line: its data file, and its options with their values."""

    def __init__(self, command: str) -> None:
        _, self.name, *words = shlex.split(command)
        self.file = ""
        self.options: list[tuple[str, list[str]]] = []
        rest = iter(words)
        for word in rest:
            if not word.startswith("-"):
                self.file = word
                continue
            short = not word.startswith("--")
            option = word[:2] if short else word.partition("=")[0]
            alone = word in _FLAGS or "=" in word or (short and len(word) > 2)
            self.options.append((option, [word] if alone else [word, next(rest, "")]))

    def has(self, option: str) -> bool:
        """Whether an option is given."""
        return any(name == option for name, _ in self.options)

    def kept(self, wanted: Collection[str]) -> str:
        """The data file and the ``wanted`` options."""
        return self._line(words for name, words in self.options if name in wanted)

    def without(self, unwanted: Collection[str]) -> str:
        """The data file and all but the ``unwanted`` options."""
        return self._line(words for name, words in self.options if name not in unwanted)

    def _line(self, options: Any) -> str:
        return shlex.join([self.file, *(word for words in options for word in words)])


def next_steps(
    command: str, folder: Path, clusters: int, results: Mapping[str, Any], model: Any, X: Any
) -> Iterator[tuple[str, str]]:
    """Commands, and what each is for; ``command`` is that which wrote ``folder``, from ``model`` and X."""
    typed, kind, where = Typed(command), Kind.of(X), _typed(folder)
    after = _after_fit if typed.name == "fit" else _after_cluster
    yield from after(typed, kind, where, clusters, results, model)
    if not kind.blocks:
        suit = [name.lower() for name, one in MODELS.items() if kind.suits(one())]
        some = "" if len(suit) == len(MODELS) else f" --models {','.join(suit)}"
        some += " --no-references" if kind.missing else ""
        which = "all methods" if not some else "the methods that take such data"
        yield f"lognmf compare {typed.kept(_OF_DATA)} -k {results['parts']}{some}", f"{which} side by side"
    read = "".join(f" {shlex.join(words)}" for name, words in typed.options if name in _OF_NEW)
    place = shlex.quote(where)
    yield f"lognmf predict {place} NEW{read}", "clusters of the samples in a file NEW"
    yield f"lognmf transform {place} NEW{read}", "how much of each part is in them"


def _after_fit(
    typed: Typed, kind: Kind, where: str, clusters: int, results: Mapping[str, Any], model: Any
) -> Iterator[tuple[str, str]]:
    """Commands to go on with after a fit."""
    if results["stop_reason"] == "max_iter" and not typed.has("--tune"):
        more = f"--force --max-iter {2 * results['iterations']}"
        yield f"lognmf fit {typed.without(('--max-iter', '--force'))} {more}", "go on until it has converged"
    tunable = model.spec.weights or "spectral" in model.spec.starts
    if tunable and not (typed.has("--tune") or kind.blocks):
        own = typed.without((*_K, *_PLACE, *_CHOSEN))
        out = shlex.quote(f"{where}-tuned")
        yield (
            f"lognmf fit {own} -k {results['parts']} --tune --out {out}",
            "choose the weights without labels",
        )
    if kind.several and not (kind.signed or kind.blocks or results["chosen"]):
        own, out = typed.without((*_K, *_PLACE)), shlex.quote(f"{where}-auto")
        yield f"lognmf fit {own} -k auto --out {out}", "choose the number of parts without labels"
    given = typed.has("--model")
    fits = (
        kind.suits(model) and not (kind.blocks and hasattr(model, "outliers")) if given else not kind.signed
    )
    if fits and not kind.missing:
        yield (
            f"lognmf cluster {typed.kept((*_OF_DATA, '--model', '--memory'))} -k {clusters}",
            "clusters by the neighbour graph instead of k-means on the codes",
        )


def _after_cluster(
    typed: Typed, kind: Kind, where: str, clusters: int, results: Mapping[str, Any], model: Any
) -> Iterator[tuple[str, str]]:
    """Commands to go on with after a clustering."""
    if kind.suits(model):
        purpose = "parts that are fitted until they converge"
        if not typed.has("--model") or hasattr(model, "outliers"):
            purpose += ", and outliers"
        yield f"lognmf fit {typed.kept((*_OF_DATA, '--model', '--memory'))} -k {clusters}", purpose


def _typed(folder: Path) -> str:
    """A folder as it would be typed here."""
    near = os.path.relpath(folder)
    return str(folder) if near.startswith("..") else near
