"""Means over seeds and paired tests, against SciPy and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from lognmf.paper.analyse import holm, paired_tests


def test_paired_tests():
    rng = np.random.default_rng(0)
    sets = [f"set {i}" for i in range(8)]
    means = {name: dict(zip(sets, rng.random(8), strict=True)) for name in "abc"}
    del means["c"]["set 0"]
    one, other = paired_tests(means, "a", ["b", "c", "nobody"])
    differences = np.array([means["a"][s] - means["b"][s] for s in sets])
    assert one.p == pytest.approx(wilcoxon(differences).pvalue)
    assert (one.pairs, other.pairs) == (8, 7)
    assert one.wins + one.losses == 8
    assert one.difference == pytest.approx(differences.mean())
    assert one.p_holm >= one.p


def test_nothing_differs():
    (same,) = paired_tests({"a": {"x": 0.5, "y": 0.4}, "b": {"x": 0.5, "y": 0.4}}, "a", ["b"])
    assert (same.p, same.p_holm, same.wins, same.losses) == (1.0, 1.0, 0, 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm(values):
    corrected = holm(values)
    assert all(p <= q <= 1 for p, q in zip(values, corrected, strict=True))
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()
    assert min(corrected) == pytest.approx(min(1, len(values) * min(values)))
