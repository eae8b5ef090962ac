"""What the command line reads, read in Python."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from lognmf import load_data


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


def test_what_is_missing_is_named():
    program = "import sys; sys.modules['typer'] = None; from lognmf import load_data; load_data('digits')"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stderr.splitlines()[-1] == 'ImportError: load_data needs typer: run pip install "lognmf[cli]".'
