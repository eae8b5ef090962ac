"""The picture of the evidence for a number of components."""

import numpy as np
import pytest

from drawing import png
from lognmf import plots
from lognmf.choose.components import ComponentChoice

pytest.importorskip("matplotlib")

ROWS = [
    {
        "k": k,
        "held_out_error": error,
        "held_out_se": 0.01,
        "above_best": error - 0.1,
        "above_best_se": 0.01,
        "training_error": error / 2,
        "stability": 1 - 0.05 * k,
    }
    for k, error in ((2, 0.5), (3, 0.1), (4, 0.11))
]


@pytest.mark.parametrize("by", ["held_out", "stability"])
def test_evidence_is_drawn_and_the_choice_marked(by):
    figure = plots.components(ROWS, 3, by)
    assert len(figure.axes) == 2
    assert figure.axes[0].get_title() == plots.components.__globals__["TITLES"][by]
    assert [text.get_text() for text in figure.axes[0].texts] == ["k = 3"]
    held_out = next(axes for axes in figure.axes if axes.get_title().startswith("Error"))
    lines = {line.get_label(): line.get_ydata() for line in held_out.lines}
    np.testing.assert_allclose(lines["fitted entries"], [0.25, 0.05, 0.055])
    assert len(png(figure)) > 5000


def test_only_what_was_computed():
    rows = [{"k": row["k"], "stability": row["stability"]} for row in ROWS]
    (axes,) = ComponentChoice(2, "because", rows, "stability").plot().axes
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [0.9, 0.85, 0.8])


def test_large_ranges_of_errors_are_logarithmic():
    rows = [row | {"held_out_error": row["held_out_error"] ** 4} for row in ROWS]
    assert plots.components(rows, 3).axes[0].get_yscale() == "log"
    assert plots.components(ROWS, 3).axes[0].get_yscale() == "linear"
