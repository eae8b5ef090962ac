"""lognmf: sparse, graph-regularised, robust nonnegative matrix factorisation.

LS-NMF and RLS-NMF of Peng et al. and their seven baselines as scikit-learn estimators, on NumPy, SciPy sparse
matrices and torch tensors. The public names are listed in ``__init__.pyi`` and loaded when first used.
"""

from typing import Any

import lazy_loader

_load_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _load_name(name)
    if name == "__version__":
        from importlib.metadata import version

        return version("lognmf")
    msg = f"module 'lognmf' has no attribute {name!r}"
    raise AttributeError(msg)
