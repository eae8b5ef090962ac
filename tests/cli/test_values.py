"""Values that a model cannot take: refused in words of the command line, unless a scaling cures them."""

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from lognmf.cli.prepare import negative_columns

pytestmark = pytest.mark.usefixtures("no_pictures")
ADVICE = "add --scale-features minmax, which maps each column to 0 to 1, or choose --model semi-nmf"


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch, rng):
    """A table with negative values in two columns."""
    monkeypatch.chdir(tmp_path)
    table = pandas.DataFrame(rng.random((24, 4)) - [0, 0.5, 0, 0.5], columns=list("abcd"))
    table.to_csv("x.csv", index=False)
    return table


@pytest.mark.parametrize("command", ["fit", "cluster", "compare"])
def test_minmax_cures_negative_values(run, command):
    quick = ["--models", "nmf", "--no-references"] if command == "compare" else ["--model", "nmf"]
    arguments = [command, "x.csv", "-k", 2, *quick, "--out", "r"]
    code, _, err = run(*arguments)
    assert code == 2
    assert f"Error: x.csv has negative values in columns 'b', 'd': {ADVICE}, which takes them." in err
    code, _, err = run(*arguments, "--scale-features", "minmax")
    assert code == 0, err
    assert run(*arguments, "--scale-features", "max", "--force")[0] == 2
    if command != "compare":
        assert run("transform", "r", "x.csv")[0] == 0
        codes = pandas.read_csv("x-codes.csv").filter(like="part")
        assert np.isfinite(codes.to_numpy()).all()


def test_minmax_with_missing_and_infinite_entries(run, table):
    table.mask(table > 0.9).to_csv("holes.csv", index=False)
    how = ["-k", 2, "--scale-features", "minmax", "--out", "r"]
    assert run("fit", "holes.csv", *how, "--model", "wnmf")[0] == 0
    for sign in (-1, 1):
        table.mask(table > 0.9, sign * np.inf).to_csv("far.csv", index=False)
        code, _, err = run("fit", "far.csv", *how, "--force")
        assert (code, "far.csv has infinite entries" in err) == (2, True)


def test_sparse_data_are_not_lifted(run, table):
    sp.save_npz("x.npz", sp.csr_array(table.to_numpy()))
    code, _, err = run("fit", "x.npz", "-k", 2, "--scale-features", "minmax")
    assert code == 2
    assert "x.npz has negative values in columns 2, 4: choose --model semi-nmf" in err


def test_columns_in_words():
    X = np.array([[1.0, np.nan, -1.0], [1.0, -1.0, np.nan]])
    assert negative_columns(X, None) == "columns 2, 3"
    assert negative_columns(X[:, :2], ["a", "b"]) == "column 'b'"
    assert negative_columns(-np.ones((2, 10)), None) == "columns 1, 2, 3, 4, 5, 6, 7, 8 and 2 more"


def test_the_hint_changes_no_result(run, table, tmp_path):
    table.abs().assign(id=range(1001, 1025)).to_csv("id.csv", index=False)
    code, _, err = run("fit", "id.csv", "-k", 2, "--model", "nmf", "--out", "r")
    assert code == 0
    assert err.count("Hint: used as features: column 'id' (if it names the samples, give --index 'id').") == 1
    assert (tmp_path / "r" / "parts.csv").read_text().count("\nid,") == 1
    code, _, err = run("fit", "id.csv", "-k", 2, "--model", "nmf", "--out", "s", "--index", "id")
    assert (code, "used as features" in err) == (0, False)
