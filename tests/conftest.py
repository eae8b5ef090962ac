"""Fixtures and settings shared by all tests."""

import os
from pathlib import Path

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("default", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def several_threads(monkeypatch):
    """A function that lets so many threads share even the smallest work inside `threads_for`."""
    from lognmf.core import threads

    def use(count):
        monkeypatch.setattr(threads, "allowed", lambda: count)
        monkeypatch.setattr(threads, "SMALL", 0)

    return use


@pytest.fixture(scope="session")
def data_home():
    """The folder of the benchmark data sets, or a skip that says how to get it."""
    folder = os.environ.get("LOGNMF_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LOGNMF_DATA does not name a folder with the benchmark data sets")
    return Path(folder)


@pytest.fixture
def run(capsys):
    """Run a command: exit code, standard output, standard error."""
    from lognmf.cli import main as cli

    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            cli.main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return caught.value.code, shown.out, shown.err

    return run


@pytest.fixture
def no_pictures(monkeypatch):
    """Blank pictures, for the many tests that look at something else."""
    from matplotlib.figure import Figure

    from lognmf import plots

    for name in plots.__all__:
        monkeypatch.setattr(plots, name, lambda *_, **__: Figure(figsize=(1, 1)))
