"""The short run: the first cases of every kind."""

import pytest

from hostile.cases import completed, draw, line, outcome, simplified
from hostile.kinds import KINDS

SEED = 0
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", KINDS)
def test_no_case_breaks_a_promise(name, part):
    kind = KINDS[name]
    for number in range(part, kind.short, PARTS):
        case = draw(kind, SEED, number)
        error = outcome(kind, case)[1]
        assert error is None, f"{error}\nrepeat it by: {line(kind, simplified(kind, case))}"


FOUND = [
    {"model": "GNMF", "n": 3, "lam": 1000.0, "max_iter": 60},
    {"n": 8, "k": 2, "values": "ones", "init": "spectral"},
    {"n": 5, "p": 5, "k": 2, "dtype": "bool", "init": "nndsvda"},
    {"n": 2, "container": "torch", "also": "transform", "loss": "kullback-leibler"},
    {"bad": ["random_state", 1]},
    {"model": "LS-NMF", "n": 2, "decade": -30, "also": "weights of a grid", "solver": "cd", "init": "scaled"}
    | {"beta": 0.1, "lam": 0.1},
    {"model": "LS-NMF", "k": 2, "dtype": "float32", "init": "nndsvdar", "beta": 1e12, "max_iter": 20},
    {"model": "LS-NMF", "p": 2, "decade": 9, "dtype": "float32", "solver": "cd", "alpha": 0.1, "beta": 1e12}
    | {"max_iter": 5},
    {"model": "Semi-NMF", "n": 5, "k": 5, "values": "blocks", "seed": 2, "max_iter": 5},
    {"model": "RMNMF", "n": 3, "k": 2, "values": "denormal", "decade": 30, "also": "transform"},
    {"model": "LS-NMF", "p": 13, "missing": "mask", "unit_components": True, "beta": 0.1, "max_iter": 5},
    {"model": "RLS-NMF", "dtype": "float32", "solver": "cd", "alpha": 1e-12, "beta": 1e12, "max_iter": 20}
    | {"also": "again"},
    {"model": "RMNMF", "n": 5, "dtype": "int64", "also": "weights of a grid", "init": "scaled", "mu": 1000.0}
    | {"max_iter": 5},
    {
        "model": "RMNMF",
        "n": 8,
        "k": 3,
        "values": "sparse",
        "decade": 3,
        "graph": "given",
        "seed": 6,
        "mu": 1.0,
    }
    | {"also": "weights of a grid", "init": "scaled"},
    {"model": "RMNMF", "n": 5, "k": 2, "values": "zeros", "container": "torch", "graph": "given", "seed": 12}
    | {"also": "weights of a grid", "init": "scaled", "lam": 0.001},
    {"model": "RLS-NMF", "n": 2, "values": "blocks", "decade": 9, "dtype": "float16", "container": "csr"}
    | {"beta": 1e6, "lam": 10.0, "gamma": 0.001, "max_iter": 5},
    {"model": "LS-NMF", "n": 2, "also": "again", "alpha": "auto", "lam": 0.1},
    {"model": "RLS-NMF", "n": 2, "graph": "given", "also": "weights of a grid", "lam": 0.1, "gamma": "auto"},
    {"model": "GNMF", "n": 20, "p": 24, "values": "blocks", "also": "again", "init": "spectral", "lam": 0.1}
    | {"n_neighbors": 1},
    {"model": "GNMF", "n": 3, "k": 3, "also": "again", "lam": 1e12, "scale": "auto", "max_iter": 20},
    {"model": "LS-NMF", "decade": -9, "dtype": "float32", "loss": "kullback-leibler", "alpha": 1e12}
    | {"beta": 1000.0, "max_iter": 5},
    {"model": "LS-NMF", "n": 5, "p": 2, "values": "denormal", "graph": "given", "seed": 10, "alpha": "auto"}
    | {"loss": "kullback-leibler", "lam": 0.1, "scale": 0.001},
    {"model": "GNMF", "n": 2, "dtype": "int64", "graph": "given", "seed": 1, "init": "spectral", "lam": 0.1}
    | {"loss": "kullback-leibler", "scale": 0.001},
    {"model": "RMNMF", "n": 8, "k": 2, "graph": "given", "also": "weights of a grid", "seed": 3, "mu": 1.0}
    | {"init": "scaled", "scale": 0.001, "max_iter": 60},
    {"model": "RLS-NMF", "also": "transform", "beta": 0.1, "gamma": 0.0, "max_iter": 20},
    {"model": "LS-NMF", "p": 2, "k": 2, "decade": 100, "init": "scaled", "alpha": "auto"},
]


@pytest.mark.parametrize("case", FOUND, ids=lambda case: " ".join(map(str, case.values())))
def test_what_soaks_have_found(case):
    """Each of these failed once."""
    if case.get("container") == "torch":
        pytest.importorskip("torch", reason="torch is an extra")
    assert outcome(KINDS["fits"], completed(KINDS["fits"], case))[1] is None
