"""The scoreboard shows its committed rows, and all solvers minimise the same objective."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
BENCHMARK = ROOT / "benchmarks" / "benchopt_nmf"


def module(file):
    """A file of the benchmark as a module."""
    spec = importlib.util.spec_from_file_location(f"scoreboard_{file.stem}", file)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def fitted(objective, name, **parameters):
    """A solver of the benchmark after many iterations; None if it skips the objective."""
    solver = module(BENCHMARK / "solvers" / f"{name}.py").Solver.get_instance(**parameters)
    given = objective.get_objective()
    if solver.skip(**given)[0]:
        return None
    solver.set_objective(**given)
    solver.run(2000)
    return solver


def test_the_page_shows_the_committed_rows():
    if not (BENCHMARK / "results.parquet").exists():
        pytest.skip("the sdist has no measured rows")
    page = module(BENCHMARK / "page.py")
    text = (ROOT / "docs" / "scoreboard.md").read_text(encoding="utf-8")
    found = page.curves("results.parquet", "objective_cpu_seconds")
    assert found.keys() == page.OBJECTIVES.keys()
    for objective, by_data in found.items():
        assert f"## {page.OBJECTIVES[objective]}\n\n{page.table(by_data)}\n" in text
    assert f"\n\n{page.on_gpu()}\n" in text
    assert f"\n\n{page.headline(found)}\n" in text


@pytest.mark.parametrize("model", ["nmf", "graph", "sparse"])
def test_solvers_minimise_what_is_evaluated(model, monkeypatch):
    pytest.importorskip("benchopt", reason='benchopt is not installed: pip install "lognmf[peers]"')
    monkeypatch.syspath_prepend(str(BENCHMARK))
    objective = module(BENCHMARK / "objective.py").Objective.get_instance(model=model, n_components=3)
    rng = np.random.default_rng(0)
    objective.set_data(X=rng.random((30, 3)) @ rng.random((3, 20)) + 0.1 * rng.random((30, 20)))
    ours = fitted(objective, "lognmf_fit", solver="mu", device="cpu")
    value = objective.evaluate_result(**ours.get_result())["value"]
    assert ours.model.objective_ / objective.total == pytest.approx(value, rel=1e-9)
    theirs = fitted(objective, "scikit_learn", solver="mu")
    assert (theirs is None) == (model == "graph")
    if theirs is not None:
        assert objective.evaluate_result(**theirs.get_result())["value"] == pytest.approx(value, rel=0.02)
