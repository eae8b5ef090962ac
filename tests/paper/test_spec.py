"""Cells are frozen values whose key says what they are; pieces cut them without loss."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lognmf.models import MODELS
from lognmf.paper.methods import PINNED
from lognmf.paper.spec import CLEAN, Data, Noise, cell, pieces

DATA = Data("digits", 50)


def test_equal_cells_have_one_key():
    one = cell(
        DATA, CLEAN, "LS-NMF", options={"tol": 0.0, "init": "random"}, grid={"lam": [1.0], "beta": [0.1, 1.0]}
    )
    other = cell(
        DATA,
        CLEAN,
        "LS-NMF",
        options={"init": "random", "tol": 0.0},
        grid={"beta": (0.1, 1.0), "lam": (1.0,)},
    )
    assert one == other
    assert one.key == other.key
    assert one.settings() == [{"beta": 0.1, "lam": 1.0}, {"beta": 1.0, "lam": 1.0}]
    assert json.loads(json.dumps(one.to_dict())) == one.to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"data": Data("digits")},
        {"noise": Noise("removal", 0.2)},
        {"noise": Noise("removal", 0.2, replacement=True)},
        {"model": "RLS-NMF"},
        {"options": (("tol", 0.1),)},
        {"grid": (("lam", (2.0,)),)},
        {"seeds": (1,)},
        {"work": "curve"},
    ],
)
def test_other_cells_have_other_keys(change):
    plain = cell(DATA, CLEAN, "LS-NMF", options={"tol": 0.0}, grid={"lam": [1.0]})
    assert dataclasses.replace(plain, **change).key != plain.key


def test_a_key_is_the_same_everywhere():
    # Stores of other machines and of older runs hold it; that of NMF changes with a default of NMF.
    assert cell(DATA, CLEAN, "k-means").key == "c6f8bb39a73cdc981df710fe"
    assert cell(DATA, CLEAN, "NMF").key == "f79f75b87e46ffeb7bd26458"


def with_default(model, **default):
    """The model with another default."""

    class Changed(model):
        def __init__(self, n_components=2, **parameters):
            super().__init__(n_components, **parameters)

        def get_params(self, deep=True):
            return {**model().get_params(deep), **default}

    return Changed


@pytest.mark.parametrize(("name", "default"), [("GNMF", {"lam": 7.0}), ("LS-NMF", {"tol": 0.5})])
def test_another_default_is_another_cell(name, default, monkeypatch):
    options = {"max_iter": 5}
    before = cell(DATA, CLEAN, name, options=options).key
    fixed = [
        {"options": {**options, **default}},
        {"options": options, "grid": {parameter: [value] for parameter, value in default.items()}},
    ]
    same = [cell(DATA, CLEAN, name, **given).key for given in fixed]
    monkeypatch.setitem(MODELS, name, with_default(MODELS[name], **default))
    assert cell(DATA, CLEAN, name, options=options).key != before
    assert [cell(DATA, CLEAN, name, **given).key for given in fixed] == same


def test_other_pinned_settings_are_another_cell(monkeypatch):
    before = cell(DATA, CLEAN, "LS-NMF").key
    monkeypatch.setitem(PINNED["LS-NMF"], "init", "spectral")
    assert cell(DATA, CLEAN, "LS-NMF").key != before


def test_a_default_that_is_written_out_changes_no_key():
    plain = cell(DATA, CLEAN, "GNMF")
    written = cell(DATA, CLEAN, "GNMF", options={"lam": MODELS["GNMF"]().lam})
    assert plain.key == written.key
    assert plain.to_dict() != written.to_dict()  # rows show the options as given


def test_cells_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        cell(DATA, CLEAN, "NMF").model = "GNMF"


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 40))
def test_pieces_cover_a_cell_once(values, seeds, size):
    whole = cell(DATA, CLEAN, "GNMF", grid={"lam": range(1, values + 1)}, seeds=range(seeds))
    parts = list(pieces(whole, size))
    covered = [(i, seed) for part in parts for i in part.settings for seed in part.seeds]
    assert sorted(covered) == [(i, seed) for i in range(values) for seed in range(seeds)]
    assert [part.number for part in parts] == list(range(len(parts)))
    assert all(part.fits <= max(size, 1) for part in parts)
    assert parts == list(pieces(whole, size))


def test_a_cell_without_a_grid_is_one_setting():
    (part,) = pieces(cell(DATA, CLEAN, "NMF"), 1)
    assert (part.cell.settings(), part.settings, part.seeds, part.fits) == ([{}], range(1), (0,), 1)
