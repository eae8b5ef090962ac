"""`import lognmf` is light, and the names others build on are all there."""

import subprocess
import sys

import pytest

import lognmf

CONTRACT = [
    "LogSparseNMF",
    "RobustLogSparseNMF",
    "NMFClustering",
    "MODELS",
    "log_norm",
    "l2_log_norm",
    "l21_norm",
    "shrink_l2_log",
    "shrink_l21",
    "knn_graph",
    "fit_grid",
    "select",
    "tune",
    "choose_components",
    "consensus_components",
    "metrics",
    "datasets",
    "noise",
    "plots",
    "cluster",
    "compare",
    "save_model",
    "load_model",
    "in_blocks",
    "on_workers",
]
HEAVY = {"torch", "dask", "pandas", "matplotlib", "typer", "rich", "pyarrow", "sklearn", "pooch", "PIL"}


def test_import_is_light():
    program = "import sys, lognmf; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "lognmf" in modules
    assert not HEAVY & set(modules)


@pytest.mark.parametrize("name", CONTRACT)
def test_public_name(name):
    assert name in lognmf.__all__
    assert name in dir(lognmf)
    assert getattr(lognmf, name) is not None


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'NMF2000'"):
        lognmf.NMF2000  # noqa: B018


def test_version():
    from importlib.metadata import version

    assert lognmf.__version__ == version("lognmf")


OPTIONAL = {
    "torch",
    "dask",
    "distributed",
    "matplotlib",
    "PIL",
    "pooch",
    "requests",
    "typer",
    "rich",
}


def test_every_name_without_the_extras():
    """Only what a plain installation has: extras are asked for where they are used, in a sentence."""
    program = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OPTIONAL | {"pyarrow", "pandas", "polars", "jinja2"}}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
import numpy as np
import lognmf
for name in lognmf.__all__:
    if name != "plots":
        getattr(lognmf, name)
X = np.random.default_rng(0).random((20, 6))
for name, model in lognmf.MODELS.items():
    model(2, max_iter=2).fit(X).transform(X)
lognmf.fit_grid("LS-NMF", X, {{"lam": [0.1, 1.0]}}, n_clusters=2, max_iter=2)
lognmf.datasets.load("digits")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
