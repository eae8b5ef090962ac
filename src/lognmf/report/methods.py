"""The methods that pages name, from the docstrings of their classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from lognmf import MODELS
from lognmf.report.page import Method

_OTHERS = (
    Method("k-means", "Lloyd's algorithm", "Clusters of the samples themselves, without a factorisation."),
    Method("spectral clustering", "normalised cuts", "Clusters by the eigenvectors of the neighbour graph."),
    Method(
        "spectral start",
        "clusters of the spectral initialisation",
        "What models with `init='spectral'` start from.",
    ),
    Method(
        "NMFClustering",
        "the package's clusterer",
        "The clustering of largest modularity on the neighbour graph among several.",
    ),
)


def spelled_out(names: Iterable[str]) -> tuple[Method, ...]:
    """The methods among ``names``, each once."""
    named = {name.partition(",")[0] for name in names}
    models = tuple(_described(name, model) for name, model in MODELS.items() if name in named)
    return models + tuple(method for method in _OTHERS if method.name in named)


def _described(name: str, model: type) -> Method:
    """A model by the first line and the reference of its docstring."""
    lines = (inspect.getdoc(model) or "").split("\n")
    title = lines[0].partition(": ")[2].rstrip(".")
    after = lines[lines.index("References") + 2 :] if "References" in lines else []
    end = after.index("") if "" in after else len(after)
    return Method(name, title, "", " ".join(line.strip() for line in after[:end]))
