"""What the command line reads, read in Python."""

import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from lognmf import load_data
from lognmf.io import DataWarning


def test_a_table_with_names(tmp_path):
    frame = pandas.DataFrame({"who": list("abc"), "x": [1.0, 2, 3], "y": [4.0, 5, 6], "kind": list("uvu")})
    frame.to_csv(tmp_path / "t.csv", index=False)
    data = load_data(tmp_path / "t.csv", labels="kind", index="who")
    np.testing.assert_array_equal(data.X, [[1, 4], [2, 5], [3, 6]])
    assert data.feature_names == ("x", "y")
    assert data.sample_names == ("a", "b", "c")
    assert data.y.tolist() == ["u", "v", "u"]


def test_a_sparse_matrix_turned(tmp_path):
    sp.save_npz(tmp_path / "t.npz", sp.csr_array(np.eye(3, 4)))
    (tmp_path / "names.txt").write_text("p\nq\nr")
    data = load_data(tmp_path / "t.npz", transpose=True, features=str(tmp_path / "names.txt"))
    assert sp.issparse(data.X)
    assert data.X.shape == (4, 3)
    assert data.feature_names == ("p", "q", "r")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no file .*: give a csv"):
        load_data(tmp_path / "none.csv")


def test_what_the_command_line_needs_is_not_needed():
    program = """
        import sys
        sys.modules |= dict.fromkeys(["typer", "rich", "jinja2", "matplotlib", "pyarrow"])
        from lognmf import load_data
        print(load_data("digits").X.shape)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("(1797, 64)\n", "")


# Columns that may be no features -------------------------------------------------------------


def hints(path, columns, **given):
    pandas.DataFrame(columns).to_csv(path / "x.csv", index=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_data(path / "x.csv", **given)
    assert all(warning.category is DataWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_columns_that_look_like_ids_or_labels_are_named(tmp_path, rng):
    a = {"a": rng.random(9), "b": rng.random(9)}
    assert hints(tmp_path, {"ID": rng.permutation(9), **a, "Target": [0, 1, 2] * 3}) == [
        "used as features: column 'ID' (if it names the samples, give index='ID'), "
        "column 'Target' (if it is their label, give labels='Target')."
    ]
    (said,) = hints(tmp_path, {**a, "my row": range(1001, 1010)})
    assert "column 'my row' (if it names the samples, give index='my row')" in said
    (said,) = hints(tmp_path, {**a, "y": [1] * 9, "kind": list("aab") * 3}, labels="kind")
    assert "column 'y' (if it is none, remove it" in said


def test_ordinary_columns_are_not(tmp_path, rng):
    counts = rng.poisson(2, (9, 60))
    for columns in (
        {f"g{j}": counts[:, j] for j in range(60)},
        {"class" if j == 7 else f"w{j}": counts[:, j] for j in range(60)},
        {"x": counts[:, 0], "y": counts[:, 1], "z": counts[:, 2]},
        {"index": rng.random(9), "class": rng.random(9)},
        {"a": range(4), "b": range(4)},
        {"a": [1, 2, np.nan, 4, 5, 6], "b": [1, 2, 3, 4, 5, 7]},
    ):
        assert hints(tmp_path, columns) == []
