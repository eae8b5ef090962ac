"""One function per figure. Each returns a matplotlib Figure and touches no global state."""

from lognmf.plots.comparison import comparison
from lognmf.plots.components import components
from lognmf.plots.fit import codes, convergence
from lognmf.plots.grid import sensitivity
from lognmf.plots.parts import parts, parts_of_models
from lognmf.plots.samples import pictures, samples

__all__ = [
    "codes",
    "comparison",
    "components",
    "convergence",
    "parts",
    "parts_of_models",
    "pictures",
    "samples",
    "sensitivity",
]
