"""Ctrl-C keeps finished fits, and the next call goes on from them."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas
import pytest

from lognmf import fit_grid
from lognmf.grid.grid import Grid

PROGRAM = """
    import os, signal, sys, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from lognmf.grid.grid import Grid
    from lognmf.cli.main import main
    rows, left = Grid._fitted, [int(os.environ["BATCHES"])]
    def told(run, pairs):
        if not left[0]:
            print("waiting", flush=True)
            time.sleep(600)
        left[0] -= 1
        return rows(run, pairs)
    Grid._fitted = told
    main(sys.argv[1:])
"""
FIT = ["fit", "x.npy", "-k", "3", "--model", "gnmf", "--tune", "--restarts", "8", "--out", "r"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    X = np.repeat(np.eye(3).repeat(4, axis=1), 20, axis=0) * rng.random((60, 12)) + 0.3 * rng.random((60, 12))
    np.save("x.npy", X)
    return tmp_path


@pytest.fixture
def fitted(monkeypatch):
    """Numbers of fits of the batches that were computed in this process."""
    sizes, rows = [], Grid._fitted

    def counted(run, pairs):
        sizes.append(len(pairs))
        return rows(run, pairs)

    monkeypatch.setattr(Grid, "_fitted", counted)
    return sizes


def interrupted(arguments, batches):
    """Exit code and words of a command that gets a SIGINT after so many batches of fits."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "BATCHES": str(batches)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-u", "-c", textwrap.dedent(PROGRAM), *arguments]
    with subprocess.Popen(command, env=environment, **pipes) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, err


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.usefixtures("no_pictures")
def test_a_second_call_goes_on(here, run, fitted):
    assert run(*FIT[:-1], "whole")[0] == 0
    whole = sum(fitted)
    fitted.clear()

    code, err = interrupted(FIT, 1)
    assert code == 130
    told = re.search(
        r"interrupted; (\d+) fits are saved in .*r.unfinished.db: run the command again to resume", err
    )
    assert int(told[1]) > 0
    assert names(here) == ["r.unfinished.db", "whole", "x.npy"]

    code, _, err = run(*FIT)
    assert code == 0, err
    assert "Resuming from" in err
    assert 0 < sum(fitted) < whole
    assert names(here) == ["r", "whole", "x.npy"]
    for name in ("labels.csv", "codes.csv", "parts.csv"):
        both = (pandas.read_csv(here / folder / name) for folder in ("r", "whole"))
        pandas.testing.assert_frame_equal(*both)
    assert "unfinished" not in json.dumps(json.loads((here / "r" / "summary.json").read_text())["settings"])


def test_without_a_finished_fit_nothing_is_kept(here):
    code, err = interrupted(FIT, 0)
    assert code == 130
    assert "interrupted, nothing written" in err
    assert names(here) == ["x.npy"]


@pytest.mark.usefixtures("no_pictures")
def test_fits_of_other_settings_are_forgotten(here, run):
    fit_grid("NMF", np.load("x.npy"), {"n_components": [2]}, max_iter=2, store="r.unfinished.db")
    code, _, err = run(*FIT[:-4], "--restarts", 1, "--max-iter", 5, "--out", "r")
    assert code == 0, err
    assert "r.unfinished.db holds fits of other data or settings: starting again" in err
    assert not (here / "r.unfinished.db").exists()
