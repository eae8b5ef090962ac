"""The study's drawings show the numbers they were given."""

import sys

import numpy as np
import pytest

from drawing import drawn, legend, png, ticks

pytest.importorskip("matplotlib")

from lognmf import MODELS, plots
from lognmf.paper import drawings
from lognmf.paper.drawings import bar_colours, line_styles

WEIGHTS = (0.01, 1.0, 100.0)


def history(start=9.0, rate=0.5, steps=60, end=1.0):
    t = np.arange(steps)
    return {"iteration": t, "objective": end + (start - end) * rate**t}


# Scores over weights -------------------------------------------------------------------


def test_scores_over_a_weight_are_means_in_percent():
    rows = [
        {"gamma": g, "seed": s, "accuracy": 0.5 + 0.1 * s, "nmi": g / 1000, "purity": None}
        for g in WEIGHTS[::-1]
        for s in (0, 1)
    ]
    figure = drawings.scores_by_weight({"Yale": rows, "ORL": rows}, "gamma")
    yale, orl = drawn(figure)
    assert [axes.get_title() for axes in (yale, orl)] == ["Yale", "ORL"]
    accuracy, nmi = yale.lines
    np.testing.assert_allclose(accuracy.get_xdata(), WEIGHTS)
    np.testing.assert_allclose(accuracy.get_ydata(), [55, 55, 55])
    np.testing.assert_allclose(nmi.get_ydata(), [0.001, 0.1, 10])
    assert len(yale.collections) == 1  # a band, because the seeds differ in accuracy alone
    assert yale.get_xscale() == "log"
    assert legend(figure) == ["accuracy", "NMI"]
    assert len(png(figure)) > 3000


def test_a_weight_of_zero_has_no_log_scale():
    rows = [{"lam": lam, "accuracy": 0.5} for lam in (0.0, 1.0)]
    assert drawn(drawings.scores_by_weight({"x": rows}, "lam"))[0].get_xscale() == "linear"


def test_score_maps_hold_every_pair_of_weights():
    rows = [
        {"alpha": a, "beta": b, "accuracy": a / 1000, "purity": b / 1000}
        for a in WEIGHTS
        for b in WEIGHTS[:2]
    ]
    figure = drawings.score_maps({"Yale": rows}, ("alpha", "beta"))
    accuracy, purity = drawn(figure)[:2]
    assert accuracy.get_title() == "Yale, accuracy"
    np.testing.assert_allclose(accuracy.collections[0].get_array(), [np.array(WEIGHTS) / 10] * 2)
    np.testing.assert_allclose(purity.collections[0].get_array(), [[0.001] * 3, [0.1] * 3])
    assert ticks(accuracy.xaxis) == ["0.01", "1", "100"]
    assert ticks(accuracy.yaxis) == ["0.01", "1"]
    assert [text.get_text() for text in accuracy.texts] == ["0", "0", "10"] * 2
    assert len(png(figure)) > 3000


def test_score_maps_leave_holes():
    rows = [{"alpha": 1, "beta": 1, "accuracy": 0.4}, {"alpha": 2, "beta": 2, "accuracy": None}]
    heights = drawn(drawings.score_maps({"x": rows}, ("alpha", "beta")))[0].collections[0].get_array()
    assert np.isfinite(np.ma.filled(heights, np.nan)).sum() == 1


# Objectives and rates ------------------------------------------------------------------


def test_curves_have_a_row_a_model_and_leave_the_start_out():
    sets = {"Yale": history(), "ORL": history(steps=400)}
    figure = drawings.convergence_curves({"LS-NMF": sets, "RLS-NMF": sets}, most=200)
    titles = [axes.get_title() for axes in drawn(figure)]
    assert titles == ["LS-NMF, Yale", "LS-NMF, ORL", "RLS-NMF, Yale", "RLS-NMF, ORL"]
    short, long = (axes.lines[0] for axes in drawn(figure)[:2])
    np.testing.assert_array_equal(short.get_ydata(), history()["objective"][1:])
    assert (long.get_xdata()[0], long.get_xdata()[-1]) == (1, 200)
    assert len(png(figure)) > 3000


def test_curves_of_odd_histories():
    single = {"iteration": [0], "objective": [3.0]}
    assert len(png(drawings.convergence_curves({"NMF": {"x": single}}))) > 1000
    negative = drawings.convergence_curves({"NMF": {"x": history(end=-1)}})
    assert drawn(negative)[0].get_yscale() == "linear"


@pytest.mark.parametrize("every", [1, 10])
def test_the_rate_of_a_geometric_sequence_is_its_ratio(every):
    full = history(rate=0.9, steps=401)
    t, ratio = drawings.convergence_rate(full["iteration"][::every], full["objective"][::every])
    near = t < 150
    np.testing.assert_allclose(ratio[near], 0.9, atol=1e-6)
    assert (ratio < 1).all()


def test_a_rate_where_nothing_moves_is_empty():
    for objective in ([2.0], [2.0, 2.0, 2.0], [0.0, 0.0]):
        t, ratio = drawings.convergence_rate(range(len(objective)), objective)
        assert len(t) == len(ratio) == 0


def test_rates_mark_one_and_thin_what_does_not_descend(rng):
    wild = {"iteration": np.arange(60), "objective": 5 + rng.random(60)}
    figure = drawings.convergence_rates({"Yale": {"NMF": history(rate=0.95), "RMNMF": wild}}, most=40)
    (axes,) = drawn(figure)
    calm, rough, one = axes.lines
    assert calm.get_xdata().max() == 40
    assert rough.get_linewidth() < calm.get_linewidth()
    assert rough.get_label() == "RMNMF (not descending)"
    np.testing.assert_array_equal(one.get_ydata(), [1, 1])
    assert len(png(figure)) > 3000
    assert (
        len(png(drawings.convergence_rates({"none": {"x": {"iteration": [0], "objective": [1.0]}}}))) > 1000
    )


# Times and sparseness ------------------------------------------------------------------


def test_times_are_bars_on_a_log_scale():
    seconds = {"Yale": {"NMF": 0.5, "RLS-NMF": 20.0}, "ORL": {"NMF": 2.0, "RLS-NMF": None}}
    figure = drawings.fit_times(seconds)
    (axes,) = drawn(figure)
    assert axes.get_yscale() == "log"
    tops = [[bar.get_y() + bar.get_height() for bar in bars] for bars in axes.containers]
    np.testing.assert_allclose(tops, [[0.5, 2.0], [20.0, np.nan]])
    assert legend(figure) == ["NMF", "RLS-NMF"]
    assert ticks(axes.xaxis) == ["Yale", "ORL"]
    assert len(png(figure)) > 3000


def test_sparseness_curves_show_both_factors():
    found = {"iteration": [10, 20], "sparseness_U": [0.2, 0.3], "sparseness_V": [0.5, 0.6]}
    figure = drawings.sparseness_curves({"Yale": {"LS-NMF": found, "l1": found}, "AR": {"l1": found}})
    assert [axes.get_title() for axes in drawn(figure)] == ["Yale, U", "AR, U", "Yale, V", "AR, V"]
    np.testing.assert_array_equal(drawn(figure)[2].lines[0].get_ydata(), [0.5, 0.6])
    assert legend(figure) == ["LS-NMF", "l1"]
    assert len(png(figure)) > 3000


# Colours -------------------------------------------------------------------------------


def test_every_model_has_its_own_colour_everywhere():
    colours = bar_colours(MODELS)
    assert len(set(colours.values())) == len(MODELS)
    assert bar_colours(["RLS-NMF"]) == {"RLS-NMF": colours["RLS-NMF"]}
    assert line_styles(["RLS-NMF", "NMF"])["NMF"]["color"] == colours["NMF"]


@pytest.mark.parametrize("names", [list(MODELS), [f"set {i}" for i in range(9)]])
def test_no_two_lines_differ_by_colour_alone(names):
    assert len({style["marker"] for style in line_styles(names).values()}) == len(names)


def test_pyplot_is_not_touched():
    before = "matplotlib.pyplot" in sys.modules
    drawings.fit_times({"Yale": {"NMF": 0.5}})
    drawings.convergence_rates({"Yale": {"NMF": history()}})
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_a_dollar_sign_is_no_formula():
    odd = "a $b_{ $c"
    line, rows = history(), [{"gamma": 1.0, "alpha": g, "beta": g, "accuracy": 0.5} for g in WEIGHTS]
    found = {"iteration": [1], "sparseness_U": [0.2], "sparseness_V": [0.5]}
    for figure in (
        drawings.scores_by_weight({odd: rows}, "gamma"),
        drawings.score_maps({odd: rows}, ("alpha", "beta")),
        drawings.convergence_curves({odd: {odd: line}}),
        drawings.convergence_rates({odd: {odd: line}}),
        drawings.fit_times({odd: {odd: 1.0}}),
        drawings.sparseness_curves({odd: {odd: found}}),
        plots.pictures({odd: np.ones((1, 2, 2))}, heads=[odd]),
        plots.parts_of_models({odd: np.eye(4)}, (2, 2)),
        plots.parts(np.eye(4), feature_names=[odd] * 4),
    ):
        assert len(png(figure)) > 500
