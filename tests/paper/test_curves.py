"""A followed fit has the sparseness of fits of so many iterations."""

import pytest

from lognmf import LogSparseNMF, metrics
from lognmf.paper.methods import PINNED
from lognmf.paper.spec import CLEAN, Data, cell, followed_cell, pieces
from lognmf.paper.work import perform, prepare

DATA = Data("digits", 30)


@pytest.mark.parametrize("penalty", ["log", "l1"])
def test_sparseness_over_iterations_is_that_of_one_fit(penalty):
    options = {"penalty": penalty, "max_iter": 25, "tol": 0.0}
    source = cell(DATA, CLEAN, "LS-NMF", options=options, grid={"alpha": (0.1,)}, seeds=(1,))
    (piece,) = pieces(
        followed_cell(source, [{"alpha": 0.1, "accuracy": 1, "nmi": 1}], 10, sparseness=True), 9
    )
    rows = perform(piece).rows
    assert [row["max_iter"] for row in rows] == [10, 20, 25]
    samples = prepare(DATA, CLEAN)
    for row in rows:
        settings = {
            **PINNED["LS-NMF"],
            **options,
            "alpha": 0.1,
            "eval_every": 10,
            "max_iter": row["max_iter"],
        }
        whole = LogSparseNMF(samples.classes, random_state=1, **settings).fit(samples.X)
        assert row["sparseness_U"] == pytest.approx(metrics.hoyer_sparseness(whole.components_))
        assert row["sparseness_V"] == pytest.approx(metrics.hoyer_sparseness(whole.embedding_))
