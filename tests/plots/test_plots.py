"""Figures: they show what was given, fit every size, and leave matplotlib's global state alone."""

import sys
from itertools import product

import numpy as np
import pandas
import pytest

from drawing import drawn, png, ticks
from lognmf import NMFClustering, RobustLogSparseNMF, fit_grid, plots, tune
from lognmf.grid.select import LOOKED_AT, standings
from lognmf.plots.grid import SHOWN

pytest.importorskip("matplotlib")


def texts(figure):
    return [t.get_text() for t in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


HISTORY = {"iteration": np.arange(0, 60, 10), "objective": np.array([90.0, 30, 12, 11, 10.5, 10.4])}


def test_convergence_shows_the_history():
    figure = plots.convergence(HISTORY)
    objective, fall = figure.axes
    np.testing.assert_array_equal(objective.lines[0].get_ydata(), HISTORY["objective"])
    np.testing.assert_allclose(fall.lines[0].get_ydata()[0], (90 - 30) / 90 / 10)
    assert objective.get_yscale() == fall.get_yscale() == "log"
    assert [axes.get_xlabel() for axes in figure.axes] == ["iteration", "iteration"]
    assert len(png(figure)) > 3000


@pytest.mark.parametrize("objective", [[5.0], [0.0], [3.0, 3.0], [1.0, 0.0], [-1.0, -2.0], [1.0, 2.0, 1.5]])
def test_convergence_of_odd_histories(objective):
    history = {"iteration": np.arange(len(objective)), "objective": np.array(objective)}
    assert len(png(plots.convergence(history))) > 3000


def test_parts_as_images(rng):
    components = rng.random((5, 12))
    figure = plots.parts(components, (3, 4), order=[4, 2, 0])
    shown = drawn(figure)
    assert [axes.get_title() for axes in shown] == ["part 4", "part 2", "part 0"]
    image = shown[0].images[0]
    assert image.cmap(image.norm(0.0))[:3] == (0, 0, 0)  # zero is black, as in the samples
    np.testing.assert_array_equal(shown[0].images[0].get_array(), components[4].reshape(3, 4))
    assert len(png(figure)) > 1000


def test_parts_with_signs_have_a_middle(rng):
    image = drawn(plots.parts(rng.normal(size=(2, 4)), (2, 2)))[0].images[0]
    assert image.norm.vmin == -image.norm.vmax < 0


def test_parts_without_a_shape_name_their_largest_features():
    components = np.array([[0, 3, 1, 2], [5, 0, 0, 1]])
    names = ["apple", "banana", "cherry", "a name that is far too long"]
    figure = plots.parts(components, feature_names=names)
    ticks = [[t.get_text() for t in axes.get_yticklabels()] for axes in drawn(figure)]
    assert ticks[0][0] == "banana"
    assert ticks[0][1] == "a name t…oo long"
    assert ticks[1][0] == "apple"
    assert len(png(figure)) > 1000
    numbered = drawn(plots.parts(components))[0]
    assert [t.get_text() for t in numbered.get_yticklabels()] == ["1", "3", "2"]


def test_features_without_weight_have_neither_bar_nor_name():
    components = np.zeros((3, 20))
    components[0, [4, 9]] = [1, -2]
    components[1] = np.arange(20)
    several, many, none = drawn(plots.parts(components))
    assert [t.get_text() for t in several.get_yticklabels()] == ["9", "4"]
    assert [bar.get_width() for bar in several.patches] == [-2, 1]
    assert len(many.patches) == 8
    assert len(none.patches) == len(none.get_yticklabels()) == 0
    assert several.get_ylim() == many.get_ylim() == none.get_ylim()


def test_many_parts_are_cut_and_it_is_said(rng):
    figure = plots.parts(rng.random((70, 4)), (2, 2))
    assert len(drawn(figure)) == 64
    assert "the first 64 of 70" in figure.get_suptitle()


def test_parts_of_zeros_and_single_ones():
    assert len(png(plots.parts(np.zeros((1, 4)), (2, 2)))) > 500
    assert len(png(plots.parts(np.zeros((3, 1))))) > 500


def test_parts_need_a_fitting_shape(rng):
    with pytest.raises(ValueError, match=r"\(3, 5\) has 15 pixels, but a part has 12 features"):
        plots.parts(rng.random((2, 12)), (3, 5))


def test_codes_marks_clusters_and_outliers(rng):
    V, labels = rng.random((40, 4)), np.arange(40) % 3
    share = np.zeros(40)
    share[[3, 7]] = 0.5
    figure = plots.codes(V, labels, share)
    samples, outliers = figure.axes[0].collections
    assert len(samples.get_offsets()) == 40
    np.testing.assert_allclose(outliers.get_offsets(), samples.get_offsets()[[3, 7]])
    assert len(np.unique(samples.get_facecolors(), axis=0)) == 3
    assert "outlier (2)" in texts(figure)
    heat = figure.axes[1].images[0].get_array()
    assert heat.shape == (40, 4)
    np.testing.assert_allclose(heat.max(axis=0), 1)
    assert len(png(figure)) > 10_000


def test_models_and_clusterers_can_be_drawn(rng):
    X = pandas.DataFrame(rng.random((20, 4)), columns=["w", "x$", "y", "z"])
    model = RobustLogSparseNMF(2, random_state=0).fit(X)
    model.is_outlier_[[4, 5]] = True
    assert "x$" in texts(plots.parts(model))
    assert f"outlier ({model.is_outlier_.sum()})" in texts(plots.codes(model))
    left = plots.convergence(model).axes[0]
    np.testing.assert_array_equal(left.lines[0].get_ydata(), model.history_["objective"])
    clusterer = NMFClustering(3, random_state=0).fit(X)
    assert [t.get_text() for t in plots.codes(clusterer).axes[1].get_yticklabels()] == ["0", "1", "2"]
    words = np.array(["one$", "two$"])[np.arange(20) % 2]
    figure = plots.codes(clusterer, words)
    assert [t.get_text() for t in figure.axes[1].get_yticklabels()] == ["one$", "two$"]
    assert len(png(figure)) > 3000


def test_codes_sorts_by_cluster():
    V = np.tile(np.eye(3), (5, 1))
    figure = plots.codes(V, np.tile([2, 0, 1], 5))
    np.testing.assert_array_equal(figure.axes[1].images[0].get_array(), np.repeat(np.eye(3), 5, axis=0))
    assert [t.get_text() for t in figure.axes[1].get_xticklabels()] == ["1", "2", "0"]


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (3, 2), (30, 40)])
def test_codes_of_every_size(rng, shape):
    assert len(png(plots.codes(rng.random(shape)))) > 3000
    assert len(png(plots.codes(np.zeros(shape), np.zeros(shape[0], dtype=int)))) > 3000


def test_codes_of_many_samples_draws_a_selection(rng):
    figure = plots.codes(rng.random((25_000, 2)), rng.integers(0, 60, 25_000))
    assert len(figure.axes[0].collections[0].get_offsets()) == 20_000
    assert "20000 of 25000 samples" in figure.axes[0].get_title()


def test_torch_tensors_can_be_drawn(rng):
    torch = pytest.importorskip("torch")
    V = torch.tensor(rng.random((10, 3)))
    assert len(png(plots.codes(V, torch.arange(10) % 2, V[:, 0]))) > 3000
    assert len(png(plots.parts(V))) > 1000


def test_pyplot_is_not_touched(rng):
    before = "matplotlib.pyplot" in sys.modules
    plots.codes(rng.random((5, 2)), np.zeros(5, dtype=int))
    assert ("matplotlib.pyplot" in sys.modules) == before


# Sensitivity ---------------------------------------------------------------------------


def grid_rows(cut, balance=lambda **_: 0.9, **values):
    """Rows of a grid with two seeds whose scores are functions of the parameters."""
    settings = [dict(zip(values, combination, strict=True)) for combination in product(*values.values())]
    return [
        {
            **setting, "seed": seed, "clusters": 3,
            "normalized_cut": cut(**setting) + 0.01 * seed, "balance": balance(**setting),
        }
        for setting in settings
        for seed in (0, 1)
    ]  # fmt: skip


def sensitivity(rows, by="normalized_cut"):
    return plots.sensitivity(rows, by, ranked=standings(rows, by))


def test_sensitivity_shows_what_the_criterion_looks_at():
    assert SHOWN == LOOKED_AT


def frame(axes):
    (patch,) = axes.patches
    return patch.get_xy()


def test_sensitivity_is_a_heat_map_of_the_two_parameters_with_the_most_values():
    rows = grid_rows(
        lambda alpha, beta, lam: abs(np.log10(lam) - 1) / 10 + alpha + beta / 100,
        alpha=(0.1, 0.01), beta=(0.5, 0.1, 0.2), lam=(100.0, 0.1, 1.0, 10.0),
    )  # fmt: skip
    figure = sensitivity(rows)
    (axes,) = figure.axes
    assert ticks(axes.xaxis) == ["0.1", "1", "10", "100"]
    assert ticks(axes.yaxis) == ["0.1", "0.2", "0.5"]
    assert axes.get_xlabel().startswith("lam")
    heights = axes.collections[0].get_array()
    assert heights.shape == (3, 4)
    # The mean over the seeds, at the best alpha.
    np.testing.assert_allclose(heights[0], 0.005 + 0.01 + 0.001 + np.array([0.2, 0.1, 0, 0.1]))
    assert frame(axes) == (2, 0)
    assert "Chosen (orange): alpha 0.01, beta 0.1, lam 10" in figure.get_suptitle()
    assert "each cell with its best alpha" in figure.get_suptitle()
    assert len(png(figure)) > 5000


def test_sensitivity_by_balance_shows_only_what_counts():
    rows = grid_rows(
        lambda alpha, lam: lam, lambda alpha, lam: lam / 2 + alpha, alpha=(0.1, 0.2), lam=(0.1, 0.12, 0.9)
    )
    cuts, balances = sensitivity(rows, "balanced_cut").axes
    np.testing.assert_array_equal(np.isnan(balances.collections[0].get_array()), [[0, 0, 1]] * 2)
    assert not np.isnan(cuts.collections[0].get_array()).any()
    assert frame(cuts) == frame(balances) == (1, 1)
    assert [text.get_text() for text in balances.texts].count("–") == 2


def test_sensitivity_by_modularity_shows_all_that_is_weighed():
    rows = grid_rows(lambda alpha, lam: lam, lambda alpha, lam: alpha, alpha=(0.1, 0.2), lam=(0.1, 0.2, 0.9))
    rows = [row | {"modularity": 1 - row["normalized_cut"]} for row in rows]
    modularities, cuts, balances = sensitivity(rows, "balanced_modularity").axes
    assert "Modularity" in modularities.get_title()
    assert "cut" in cuts.get_title()
    assert "Balance" in balances.get_title()
    assert not np.isnan(balances.collections[0].get_array()).any()
    assert frame(modularities) == frame(balances) == (0, 1)


def test_sensitivity_to_one_parameter_is_a_line():
    figure = sensitivity(grid_rows(lambda lam, beta: 1 / lam, lam=(0.1, 1.0, 10.0), beta=(0.3,)))
    (axes,) = figure.axes
    assert axes.get_xscale() == "log"
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [10.005, 1.005, 0.105])
    assert axes.lines[-1].get_xdata()[0] == 10.0
    assert len(axes.lines) == 1 + 6 + 1
    assert ticks(axes.xaxis) == ["0.1", "1", "10"]
    assert len(png(figure)) > 5000


def test_sensitivity_to_zeros_and_words():
    zero = sensitivity(grid_rows(lambda lam: 1 - lam / 2, lam=(0.0, 1.0)), "balanced_cut")
    assert [axes.get_xscale() for axes in zero.axes] == ["linear", "linear"]
    assert ticks(zero.axes[0].xaxis) == ["0", "1"]
    words = sensitivity(grid_rows(lambda penalty, lam: lam, penalty=("log", "l1"), lam=(1, 2, 3)))
    assert ticks(words.axes[0].yaxis) == ["log", "l1"]
    assert len(png(zero)) > 3000
    assert len(png(words)) > 3000


def test_sensitivity_of_a_large_grid_has_a_scale_instead_of_numbers():
    values = tuple(float(v) for v in range(1, 13))
    figure = sensitivity(grid_rows(lambda lam, beta: lam * beta, lam=values, beta=values))
    assert len(figure.axes) == 2
    assert not figure.axes[0].texts
    assert len(png(figure)) > 5000


def test_sensitivity_needs_something_that_varies():
    with pytest.raises(ValueError, match="several settings, in which a parameter varies"):
        sensitivity(grid_rows(lambda lam: lam, lam=(1.0,)))


def test_sensitivity_needs_a_criterion():
    with pytest.raises(ValueError, match="by must be one of"):
        plots.sensitivity([], "accuracy", ranked=[])


def test_a_collapsed_clustering_is_drawn_as_it_is_judged():
    rows = grid_rows(lambda lam: 0.2, lam=(1.0, 2.0))
    rows[0]["clusters"] = rows[1]["clusters"] = 1
    np.testing.assert_allclose(sensitivity(rows).axes[0].lines[0].get_ydata(), [2.205, 0.205])


def test_sensitivity_takes_the_results_of_grids(rng):
    X = np.repeat(np.eye(3, 6), 8, axis=0) + 0.2 * rng.random((24, 6))
    grid = {"lam": [0.1, 1.0, 10.0]}
    result = fit_grid("GNMF", X, grid, n_clusters=3, max_iter=5)
    (panel,) = plots.sensitivity(result).axes
    assert panel.get_title() == "Normalised cut, lower is better"
    by_rows = plots.sensitivity(result.rows, ranked=result.standings()).axes[0]
    np.testing.assert_array_equal(panel.lines[0].get_ydata(), by_rows.lines[0].get_ydata())
    tuned = tune(X, 3, model="GNMF", grid=grid, seeds=[0], max_iter=5)
    assert len(plots.sensitivity(tuned).axes) == 3, "what its own criterion looks at"
    assert len(plots.sensitivity(tuned, "normalized_cut").axes) == 1
    with pytest.raises(TypeError, match="takes the result of tune or fit_grid; bare rows need ranked"):
        plots.sensitivity(result.rows)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: plots.convergence({"iteration": [0, 10], "objective": [9.0, 3.0]}),
        lambda: plots.parts(np.eye(2)),
        lambda: plots.codes(np.eye(2)),
        lambda: sensitivity(grid_rows(lambda lam: lam, lam=(1.0, 2.0))),
    ],
)
def test_without_matplotlib_the_extra_is_named(monkeypatch, draw):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'Plots need matplotlib: run pip install "lognmf\[plots\]"'):
        draw()


def test_what_was_not_tried_is_told():
    rows = grid_rows(lambda lam, beta: lam * beta, lam=(1.0, 2.0), beta=(1.0, 3.0))
    assert not any("not tried" in text for text in texts(sensitivity(rows)))
    some = [row for row in rows if (row["lam"], row["beta"]) != (2.0, 3.0)]
    assert any("grey: not tried" in text for text in texts(sensitivity(some)))
