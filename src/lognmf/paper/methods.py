"""The methods of the study: the paper's nine, those they are compared with, and their settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from lognmf import MODELS, cluster

if TYPE_CHECKING:
    from lognmf.paper.spec import Noise
    from lognmf.paper.work import Samples

METHODS = ("NMF", "GNMF", "RMNMF", "WNMF", "CNMF", "ONMF", "Semi-NMF", "LS-NMF", "RLS-NMF")
"""The columns of the paper's tables, in its order: names in `MODELS`, which may hold more."""

OURS = ("LS-NMF", "RLS-NMF")
"""The paper's own two models."""

WEIGHTS = ("alpha", "beta", "gamma", "lam")
"""The paper's α, β, γ and λ."""

_PLAIN = {"alpha": 0.01, "beta": 0.001, "lam": 0.1, "solver": "mu", "unit_components": False, "max_iter": 500}

PINNED: dict[str, dict[str, Any]] = {
    **{name: {"scale": 1.0} for name in ("NMF", "GNMF", "RMNMF")},
    "WNMF": {"scale": 1.0, "solver": "mu"},
    "LS-NMF": {**_PLAIN, "scale": 1.0, "init": "random"},
    "RLS-NMF": {**_PLAIN, "scale": 1.0, "init": "scaled", "gamma": 1.0},
}
"""Settings wherever a cell gives no others: the paper's plain objectives, multiplicative updates and free
scale, whatever the package's defaults are."""

PAPER_OPTIONS: dict[str, dict[str, Any]] = {
    name: {"init": "random"} for name in ("NMF", "GNMF", "WNMF", *OURS)
}
"""Starts in the paper's protocol: uniform on [0, 1); the other four use k-means, their default."""


def weights(model: str) -> tuple[str, ...]:
    """The weights that a model has."""
    return tuple(name for name in WEIGHTS if name in MODELS[model]().get_params())


_IRRELEVANT = ("n_components", "random_state", "verbose")
"""Parameters that a cell gives elsewhere, or that change no result."""


def all_parameters(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter of a fit: the options, then the pinned settings, then the model's defaults."""
    defaults = MODELS[model]().get_params() if model in MODELS else {}
    defaults = {name: value for name, value in defaults.items() if name not in _IRRELEVANT}
    return {**defaults, **PINNED.get(model, {}), **options}


# Clusterings without a factorisation -------------------------------------------------------


def _kmeans(samples: Samples, seed: int) -> np.ndarray:
    """K-means of the samples themselves."""
    return cluster(samples.X, samples.classes, random_state=seed)


def _spectral(samples: Samples, seed: int) -> np.ndarray:
    """scikit-learn's spectral clustering of the graph that the models use."""
    from sklearn.cluster import SpectralClustering

    model = SpectralClustering(samples.classes, affinity="precomputed", random_state=seed, n_init=10)
    with warnings.catch_warnings():
        # In a disconnected graph each connected component is a cluster, or a union of some.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        warnings.filterwarnings("ignore", message="Number of distinct clusters")
        return model.fit_predict(samples.W)


RIVALS: dict[str, Callable[[Samples, int], np.ndarray]] = {
    "k-means": _kmeans,
    "spectral clustering": _spectral,
}
"""What a user would pick instead of a factorisation: ``(samples, seed) -> labels``."""

OTHERS = (*(name for name in METHODS if name not in OURS), *RIVALS)
"""What the paper's two models are compared with."""


# The label-free protocol -------------------------------------------------------------------


@dataclass(frozen=True)
class Contestant:
    """A method as the label-free protocol runs it."""

    model: str  # a name in METHODS or RIVALS
    options: Mapping[str, Any] = field(default_factory=dict)
    chosen: str = ""  # the weight that is chosen without labels; "all" is the paper's whole grid
    by: str = "normalized_cut"  # criterion of that choice

    def suits(self, noise: Noise) -> bool:
        """Whether it can be run: a mask needs entries that were removed."""
        return not self.options.get("mask") or noise.kind == "removal"


CONTESTANTS = {
    **{name: Contestant(name, chosen="lam" if "lam" in weights(name) else "") for name in METHODS},
    **{name: Contestant(name) for name in RIVALS},
    "WNMF, mask": Contestant("WNMF", {"mask": True}),
    **{f"{name}, all": Contestant(name, {"init": "random"}, "all") for name in OURS},
    "LS-NMF, spectral": Contestant("LS-NMF", {"init": "spectral", "max_iter": 100}, "lam", "balanced_cut"),
}
"""By name: the paper's nine, the rivals, WNMF with a mask of the removed entries, the paper's two models
chosen from their whole grids, and LS-NMF from a spectral start."""
