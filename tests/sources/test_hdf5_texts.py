"""Lengths of texts that a damaged HDF5 file claims."""

import resource

import numpy as np
import pytest

from lognmf import in_blocks, load_data
from lognmf.sources import hdf5_texts
from lognmf.sources.hdf5_texts import check_texts

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")

GIGABYTE_IN_KB = 1 << 20


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(np.random.default_rng(0).random((6, 4))).write_h5ad(path)
    return path


def _claim_4_gb(path, name):
    """Let the first text of a dataset claim that it has almost 2³² letters."""
    with h5py.File(path) as file:
        place = file[name].id.get_offset()
    with path.open("r+b") as file:
        file.seek(place)
        file.write((2**32 - 16).to_bytes(4, "little"))


def test_texts_as_they_should_be(cells):
    check_texts(cells, 1 << 28)
    assert in_blocks(cells).shape == load_data(cells).X.shape == (6, 4)


@pytest.mark.parametrize("read", [in_blocks, load_data])
@pytest.mark.parametrize("name", ["var/_index", "obs/_index"])
def test_a_text_that_claims_too_much(cells, name, read):
    _claim_4_gb(cells, name)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=r"cannot be read.*: its texts are damaged, or need more"):
        read(cells)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < GIGABYTE_IN_KB


def test_other_damage_is_not_told_here(cells):
    with h5py.File(cells, "a") as file:
        file["var"].attrs["_index"] = "absent"
    check_texts(cells, 1 << 28)


def test_what_is_no_hdf5_file_is_told_elsewhere(tmp_path):
    (tmp_path / "x.h5").write_bytes(b"nothing")
    check_texts(tmp_path / "x.h5", 1 << 28)


def test_a_file_that_has_no_end(cells, tmp_path, monkeypatch):
    """In some damaged files the library goes round in circles."""
    program = tmp_path / "endless.py"
    program.write_text(
        "from lognmf.sources import hdf5_texts\nhdf5_texts._limit(1 << 30, 1)\nwhile True: pass\n"
    )
    monkeypatch.setattr(hdf5_texts, "__file__", str(program))
    with pytest.raises(ValueError, match="its texts are damaged"):
        check_texts(cells, 1 << 28)
