"""A followed fit: what is seen on the way is what a fit of so many iterations gives."""

import pytest

from lognmf import LogSparseNMF, metrics
from lognmf.paper.methods import PINNED
from lognmf.paper.samples import prepare
from lognmf.paper.spec import CLEAN, Data, cell, pieces
from lognmf.paper.work import perform

DATA = Data("digits", 30)


@pytest.mark.parametrize("penalty", ["log", "l1"])
def test_sparseness_over_iterations_is_that_of_one_fit(penalty):
    options = {"penalty": penalty, "max_iter": 25, "tol": 0.0, "eval_every": 1}
    (piece,) = pieces(cell(DATA, CLEAN, "LS-NMF", options=options, seeds=(1,), work="curve"), 1)
    (row,) = perform(piece).rows
    looks = row["sparseness"]
    assert [look["iteration"] for look in looks] == [0, 10, 20, 25]
    samples = prepare(DATA, CLEAN)
    for look in looks[1:]:
        settings = {**PINNED["LS-NMF"], **options, "max_iter": look["iteration"]}
        whole = LogSparseNMF(samples.classes, random_state=1, **settings).fit(samples.X)
        assert look["U"] == pytest.approx(metrics.hoyer_sparseness(whole.components_))
        assert look["V"] == pytest.approx(metrics.hoyer_sparseness(whole.embedding_))
