"""Weights of data in blocks, chosen by some of the samples."""

import numpy as np
import pytest
import scipy.sparse as sp

from lognmf import LogSparseNMF, RobustLogSparseNMF, in_blocks
from lognmf.blocks import rows
from lognmf.models import sampled_weights
from planted import Planted

N, COUNT, K = 400, 150, 3
OPTIONS = {"random_state": 0, "max_iter": 200}


@pytest.fixture(autouse=True)
def _few(monkeypatch):
    monkeypatch.setattr(rows, "MOST_SAMPLES", COUNT)
    monkeypatch.setattr(sampled_weights, "FEWEST", COUNT)


@pytest.fixture
def X():
    planted = Planted(N, 20, K, outliers=0.05, seed=1).in_blocks()
    return planted.read(slice(0, N))


def some():
    return np.sort(np.random.default_rng(sampled_weights.SEED).choice(N, COUNT, replace=False))


def with_missing(X):
    return np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)


@pytest.mark.parametrize(
    ("cls", "kind"),
    [
        (LogSparseNMF, np.asarray),
        (LogSparseNMF, sp.csr_array),
        (LogSparseNMF, with_missing),
        (RobustLogSparseNMF, np.asarray),
    ],
)
def test_weights_are_those_of_the_samples(cls, kind, X):
    """That of the parts grows with the number of samples, as the data term does."""
    X = kind(X)
    ours = cls(K, **OPTIONS).fit(in_blocks(X, rows=100))
    few = cls(K, **OPTIONS, scale=ours.scale_).fit(X[some()])
    assert few.alpha_ > 0 or few.beta_ > 0
    np.testing.assert_allclose(ours.alpha_, few.alpha_ * N / COUNT, rtol=1e-12)
    for name in set(ours.spec.auto) - {"alpha"}:
        assert getattr(ours, f"{name}_") == pytest.approx(getattr(few, f"{name}_"), rel=1e-12)
    given = {name: getattr(ours, f"{name}_") for name in ("alpha", "beta", "gamma") if hasattr(ours, name)}
    alone = cls(K, **OPTIONS, **given).fit(in_blocks(X, rows=100))
    np.testing.assert_array_equal(ours.components_, alone.components_)
    assert ours.objective_ == alone.objective_


def test_a_given_weight_of_the_parts_has_its_share_in_the_samples(X):
    ours = LogSparseNMF(K, alpha=4.0, beta="auto", **OPTIONS).fit(in_blocks(X, rows=100))
    few = LogSparseNMF(K, alpha=4.0 * COUNT / N, beta="auto", scale=ours.scale_, **OPTIONS).fit(X[some()])
    assert ours.alpha_ == 4.0
    assert few.beta_ > 0
    assert ours.beta_ == pytest.approx(few.beta_, rel=1e-12)


def test_they_do_for_all(X):
    """The error rises by what it may, within a hundredth, though the samples alone chose."""
    ours = LogSparseNMF(K, **OPTIONS).fit(in_blocks(X, rows=100))
    plain = LogSparseNMF(K, alpha=0, beta=0, **OPTIONS).fit(in_blocks(X, rows=100))
    assert 1.01 < ours.reconstruction_err_ / plain.reconstruction_err_ < 1.06
    assert (ours.components_ == 0).mean() > 0.2


@pytest.mark.parametrize("change", ["given graph", "too few", "in memory"])
def test_when_all_samples_choose(change, X, monkeypatch):
    source, options = in_blocks(X, rows=100), dict(OPTIONS)
    if change == "given graph":
        options |= {"graph": sp.csr_array(sp.diags_array(np.ones(N - 1), offsets=1)), "lam": 0.1}
        options["graph"] = sp.csr_array(options["graph"] + options["graph"].T)
    elif change == "too few":
        monkeypatch.setattr(sampled_weights, "PER_COMPONENT", COUNT)
    else:
        source = X
    ours, memory = (LogSparseNMF(K, init="nndsvda", **options).fit(Y) for Y in (source, X))
    np.testing.assert_allclose(ours.alpha_, memory.alpha_, rtol=1e-6)


def test_a_checkpoint_keeps_them(X, tmp_path, monkeypatch):
    source, folder = in_blocks(X, rows=100), tmp_path / "so far"
    first = LogSparseNMF(K, **OPTIONS).fit(source, checkpoint=folder)
    monkeypatch.setattr(sampled_weights, "_chosen", lambda *_: pytest.fail("they were chosen again"))
    again = LogSparseNMF(K, **OPTIONS).fit(source, checkpoint=folder)
    assert again.alpha_ == first.alpha_
    assert again.objective_ == pytest.approx(first.objective_, rel=1e-6)  # it went on from there
