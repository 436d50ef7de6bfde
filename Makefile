# make demo and make test need Python 3.11+, a C compiler and a package index; the rest they install.
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
READY := $(VENV)/.ready
export PATH := $(BIN):$(PATH)
SOURCES := $(wildcard src/apcg/meson.build src/apcg/_kernels/* src/apcg/_kernels/*/*)

.PHONY: demo test lint docs bench race asan mutants clean
.DEFAULT_GOAL := test

demo: $(READY)  ## apcg train and apcg compare: certificates, tables, plots in out/
	$(BIN)/python examples/demo.py --out out

test: $(READY)  ## run the tests
	$(BIN)/python -m pytest

lint: $(READY)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)  ## build the documentation in site/, without warnings
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(READY)  ## measure, in short: out/bench.md and plots; needs valgrind for instruction counts
	-$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[peers]'  # or without
	$(BIN)/python benchmarks/bench.py --out out

race: $(READY)  ## CPU seconds against other solvers, hours; goes on with out/race.jsonl; RACE="--group l1"
	-$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[peers]'  # or without
	$(BIN)/python benchmarks/race/run.py --out out/race.jsonl $(RACE)
	$(BIN)/python benchmarks/race/table.py out/race.jsonl

asan: $(READY)  ## the kernels with address and undefined-behaviour sanitizers; wants gcc with libasan
	$(BIN)/python tools/asan.py

mutants: $(READY)  ## break the checks one at a time: does a test notice? Writes docs/mutants.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/mutants.py

clean:
	rm -rf $(VENV) build out site

# An editable install: Python files are used as they are, kernels are rebuilt when imported.
$(READY): pyproject.toml meson.build $(SOURCES)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "apcg needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "meson-python>=0.17" "meson>=1.4" ninja "cython>=3.1"
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[dev]'
	touch $(READY)
