"""``lognmf fit -k 2:6`` and ``-k auto`` choose the number of parts."""

import json

import numpy as np
import pytest

SHORT = ["--model", "nmf", "--max-iter", "20", "--no-normalize"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with samples of three parts."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    V, U = (rng.gamma(2.0, 1.0, (size, 3)) * (rng.random((size, 3)) < 0.5) for size in (60, 12))
    np.save("x.npy", V @ U.T + 0.05 * rng.random((60, 12)))
    return tmp_path


@pytest.mark.parametrize("asked", ["1:6", "auto"])
def test_number_of_parts_is_chosen(run, here, asked):
    code, _, err = run("fit", "x.npy", "-k", asked, *SHORT, "--out", "r")
    assert code == 0, err
    settings = json.loads((here / "r" / "summary.json").read_text())["settings"]
    assert settings["parameters"]["n_components"] == settings["clusters"] == 3
    assert settings["components"] == asked
    assert settings["reason"].startswith("3 components")
    assert "3 components leave" in " ".join(err.split())
    assert "60 samples of 12 features, 3 parts" in err


def test_a_range_beyond_the_data_is_refused(run):
    code, _, err = run("fit", "x.npy", "-k", "2:13", *SHORT)
    assert code == 2
    assert "ks must not exceed 12" in err
