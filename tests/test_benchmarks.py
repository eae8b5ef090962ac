"""Every benchmark can be imported: what it uses of the package is still there."""

import importlib
import pathlib
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_a_benchmark_can_be_imported(name, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] == "lognmf" or (FOLDER / f"{error.name}.py").exists():
            raise
        pytest.skip(f"needs {error.name}")
    finally:
        for loaded in set(sys.modules) - before:
            if (FOLDER / f"{loaded}.py").exists():  # names like "data" belong to whoever comes next
                del sys.modules[loaded]
