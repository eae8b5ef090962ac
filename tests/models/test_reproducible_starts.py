"""Every start draws from its seed alone: equal seeds give equal fits, to the last bit."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import MODELS
from problems import make

TIMES = 8


def hard_matrices():
    """Small data on which Krylov spaces end early: few directions, equal eigenvalues, graphs in pieces."""
    rng = np.random.RandomState(0)
    blocks = np.kron(np.eye(4), np.ones((9, 3)))
    return {
        "few samples": rng.rand(7, 6),
        "constant": np.ones((30, 12)),
        "constant rows": np.ones((40, 15)) * rng.rand(40, 1),
        "blocks": blocks,
        "noisy blocks": blocks + 0.01 * rng.rand(*blocks.shape),
        "low rank": rng.rand(40, 2) @ rng.rand(2, 30),
        "zero rows and columns": np.pad(rng.rand(20, 14), ((0, 12), (0, 10))),
        "identity": np.eye(40, 26),
        "more parts than samples": rng.rand(2, 20),
        "more parts than features": rng.rand(30, 2),
        "all zero": np.zeros((25, 13)),
        "tiny": 1e-170 * rng.rand(30, 25),
    }


DATA = hard_matrices()
FORMS = {
    "dense": np.asarray,
    "float32": lambda X: np.asarray(X, dtype=np.float32),
    "sparse": sp.csr_array,
}
STARTS = [(name, init) for name, model in MODELS.items() for init in model.spec.starts]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("data", DATA)
def test_equal_seeds_give_equal_fits(data, form):
    X = FORMS[form](DATA[data])
    seen = {}
    for name, init in STARTS:
        model = MODELS[name]
        if model.spec.starts[init] in seen or (form == "sparse" and not model.spec.sparse):
            continue
        seen[model.spec.starts[init]] = name
        fits = [make(model, 3, init=init, max_iter=2, random_state=0, tol=0).fit(X) for _ in range(TIMES)]
        for fitted in ("components_", "embedding_"):
            assert len({getattr(fit, fitted).tobytes() for fit in fits}) == 1, (name, init, fitted)
