"""A repeated setting is fitted once, and its rows are those of its own fit."""

import numpy as np
import pytest

from lognmf import MODELS, fit_grid
from lognmf.models import engine
from problems import moves, samples


@pytest.fixture
def fits(monkeypatch):
    """How many settings were fitted, batch by batch."""
    counted = []
    iterate = engine.iterate

    def counting(rule, state, **options):
        counted.append(state.batch)
        return iterate(rule, state, **options)

    monkeypatch.setattr(engine, "iterate", counting)
    return counted


@pytest.mark.parametrize(
    ("name", "grid", "fitted"),
    [("GNMF", {"lam": [1.0, 2.0, 1], "graph": [None, "knn"]}, 4), ("NMF", [{}, {}], 1)],
)
def test_repetitions(rng, fits, name, grid, fitted):
    result = fit_grid(MODELS[name](3, max_iter=10), samples(rng, 30, 12), grid, seeds=[0])
    assert sum(fits) == fitted
    for i, row in enumerate(result.rows):
        np.testing.assert_allclose(row["objective"], result.model(i).objective_, rtol=1e-10)


def test_store_and_progress(rng, fits, tmp_path):
    X = samples(rng, 30, 12)
    options = {"seeds": [0, 1], "store": tmp_path / "rows.sqlite"}
    model, grid = MODELS["RLS-NMF"](3, max_iter=5, init="scaled"), {"gamma": [1.0, 2.0, 1.0], "lam": [0.1]}
    model.set_params(solver="mu", alpha=0.01, beta=0.001)
    with moves() as seen:
        first = fit_grid(model, X, grid, **options)
    assert fits == [4]
    assert seen.counts == [(6, 6)]
    assert [row["seconds"] > 0 for row in first.rows] == [True] * 4 + [False] * 2
    again = fit_grid(model, X, grid, **options)
    assert fits == [4]
    assert again.rows == first.rows
    more = fit_grid(model, X, {"gamma": [1.0, 2.0, 3.0], "lam": [0.1]}, **options)
    assert sum(fits) == 6 or fits == [4, 6]
    assert [row["gamma"] for row in more.rows] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
