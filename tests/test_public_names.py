"""`import lognmf` is light, and the names others build on are all there."""

import subprocess
import sys

import pytest

import lognmf

CONTRACT = [
    "LogSparseNMF",
    "RobustLogSparseNMF",
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
    "metrics",
    "datasets",
    "noise",
    "plots",
    "cluster",
    "compare",
    "save_model",
    "load_model",
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
