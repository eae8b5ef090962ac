"""One function per figure. Each returns a matplotlib Figure and touches no global state."""

from lognmf.plots.basis import parts, parts_of_models
from lognmf.plots.codes import embedding
from lognmf.plots.history import convergence
from lognmf.plots.ranking import comparison
from lognmf.plots.samples import samples
from lognmf.plots.weights import sensitivity

__all__ = ["comparison", "convergence", "embedding", "parts", "parts_of_models", "samples", "sensitivity"]
