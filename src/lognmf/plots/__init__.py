"""One function per figure. Each returns a matplotlib Figure and touches no global state."""

from lognmf.plots.comparison import comparison, fit_times
from lognmf.plots.components import components
from lognmf.plots.curves import (
    convergence_curves,
    convergence_rate,
    convergence_rates,
    scores_by_weight,
    sparseness_curves,
)
from lognmf.plots.fit import codes, convergence, reconstructions
from lognmf.plots.grid import score_maps, sensitivity
from lognmf.plots.parts import parts, parts_of_models
from lognmf.plots.samples import noise_levels, samples, samples_of_sets

__all__ = [
    "codes",
    "comparison",
    "components",
    "convergence",
    "convergence_curves",
    "convergence_rate",
    "convergence_rates",
    "fit_times",
    "noise_levels",
    "parts",
    "parts_of_models",
    "reconstructions",
    "samples",
    "samples_of_sets",
    "score_maps",
    "scores_by_weight",
    "sensitivity",
    "sparseness_curves",
]
