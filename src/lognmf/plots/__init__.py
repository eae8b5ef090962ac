"""One function per figure. Each returns a matplotlib Figure and touches no global state."""

from lognmf.plots.basis import parts, parts_of_models
from lognmf.plots.codes import embedding
from lognmf.plots.curves import convergence_curves
from lognmf.plots.history import convergence
from lognmf.plots.ranking import comparison
from lognmf.plots.rates import convergence_rate, convergence_rates
from lognmf.plots.reconstruction import reconstructions
from lognmf.plots.sample_sets import noise_levels, samples_of_sets
from lognmf.plots.samples import samples
from lognmf.plots.sparseness import sparseness_curves
from lognmf.plots.times import fit_times
from lognmf.plots.weight_lines import scores_by_weight
from lognmf.plots.weight_maps import score_maps
from lognmf.plots.weights import sensitivity

__all__ = [
    "comparison",
    "convergence",
    "convergence_curves",
    "convergence_rate",
    "convergence_rates",
    "embedding",
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
