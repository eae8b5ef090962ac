# Everything sets itself up: on a fresh clone only Python >= 3.11 and make are needed.
PYTHON ?= python3
BIN := .venv/bin
# A CPU build of torch, used by the tests where pip has one; a build with CUDA is never pulled in.
CPU_TORCH := torch==2.13.0
# The tests run in several processes: one thread each.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
SCOREBOARD := benchmarks/benchopt_nmf
# Of `make versions`: two interpreters, and tests that touch every dependency. Old versions beside new ones warn of
# deprecations that are not ours.
LOWEST_PYTHON ?= 3.11
NEWEST_PYTHON ?= 3.13
FEW_TESTS ?= $(addprefix tests/,test_public_names.py graph/test_graph.py test_metrics.py test_persistence.py \
	test_reading.py test_files.py blocks report/test_report_page.py models/test_input.py)

.PHONY: demo test test-numerical soak mutants check format bench docs docs-serve scoreboard release-check versions clean

demo: .venv/.cli  ## a fit and all nine methods on an embedded data set; pages in demo/fit/ and demo/compare/
	$(BIN)/lognmf fit digits -k 10 --out demo/fit --force
	$(BIN)/lognmf compare digits --out demo/compare --force

test: .venv/.dev .axe/package.json  ## all default tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n auto

NUMERICAL := tests/core tests/graph tests/models/test_second_opinions.py tests/models/test_spectral_start.py
test-numerical: .venv/.dev  ## the tests of numbers once more, with the products of another processor and two threads
	OPENBLAS_CORETYPE=Nehalem OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2 $(BIN)/python -m pytest -q -n auto $(NUMERICAL)

soak: .venv/.dev  ## an hour of random hostile cases; run it again to go on (ARGS="--minutes 10 --seed 1")
	PYTHONPATH=tests $(BIN)/python -m hostile soak $(ARGS)

mutants: .venv/.dev  ## do the tests notice faults put into the source? (ARGS="--sample 0 --groups terms,loop")
	$(BIN)/python -m pip install --quiet "cosmic-ray>=8.3"
	$(BIN)/python tests/mutants.py $(ARGS)

check: .venv/.dev  ## formatting, lint, types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/.dev  ## make the formatting right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.dev  ## speed and memory against their floors, in one run
	$(BIN)/python benchmarks/iteration.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/grid.py
	$(BIN)/python benchmarks/scale.py graph text
	$(BIN)/python benchmarks/products.py sparse transform busy
	$(BIN)/python benchmarks/threads.py
	$(BIN)/python benchmarks/blocks.py

# Checks the accessibility of pages; it has a licence of its own (MPL-2.0) and is not part of the package.
.axe/package.json:
	@mkdir -p .axe && echo '{}' > $@
	@npm install --silent --prefix .axe axe-core@4 >/dev/null 2>&1 \
		|| echo "No npm, or no network for it: the test that needs axe-core will be skipped."

docs: .venv/.docs  ## the site, in docs/_build/html; every warning is an error
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "docs/_build/html/index.html"

docs-serve: docs  ## build the site and open it in a browser
	@(sleep 1; $(BIN)/python -c 'import webbrowser; webbrowser.open("http://localhost:8000")') &
	$(BIN)/python -m http.server --bind localhost --directory docs/_build/html 8000

scoreboard: .venv/.peers  ## objective against time, ours and other libraries' solvers, one thread: docs/scoreboard.md
	@uptime
	rm -f $(SCOREBOARD)/new.parquet
	$(ONE_THREAD) $(BIN)/benchopt run $(SCOREBOARD) --config $(SCOREBOARD)/committed.yml \
		--no-cache --no-plot --no-display --output $(CURDIR)/$(SCOREBOARD)/new.parquet
	mv $(SCOREBOARD)/new.parquet $(SCOREBOARD)/results.parquet  # benchopt never overwrites a file
	$(BIN)/python $(SCOREBOARD)/page.py

release-check: .venv/.dev  ## builds sdist and wheel, checks both, runs the wheel in an environment of its own
	$(BIN)/python -m pip install --quiet "build>=1.2" "twine>=6.1"
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/release.py dist

versions: .venv/.dev  ## a part of the tests with the lowest versions that pyproject.toml allows, and with the newest
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv venv --clear --python $(LOWEST_PYTHON) .venv/lowest
	$(BIN)/uv pip install --python .venv/lowest --resolution lowest-direct --editable ".[dev]"
	SCIPY_ARRAY_API=1 $(ONE_THREAD) .venv/lowest/bin/python -m pytest -W ignore::DeprecationWarning $(FEW_TESTS)
	$(BIN)/uv venv --clear --python $(NEWEST_PYTHON) .venv/newest
	$(BIN)/uv pip install --python .venv/newest --editable ".[dev]"
	$(ONE_THREAD) .venv/newest/bin/python -m pytest $(FEW_TESTS)

clean:
	rm -rf docs/_build docs/gallery docs/api/generated docs/api/examples_of
	rm -rf .venv .axe dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "lognmf needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.cli: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[cli]"
	touch $@

.venv/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

.venv/.peers: .venv/.dev
	$(BIN)/python -m pip install --quiet --editable ".[peers]"
	touch $@

.venv/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	@if $(BIN)/python -m pip install --quiet --dry-run --no-deps --report - $(CPU_TORCH) 2>/dev/null \
		| grep -q '"version": "[^"]*+cpu"'; \
	then $(BIN)/python -m pip install --quiet $(CPU_TORCH); \
	else echo "No CPU build of torch at hand: the tests that need it will be skipped."; fi
	touch $@ .venv/.cli
