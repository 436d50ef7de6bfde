# Needs Python 3.11 or newer with venv and headers, and a C compiler (Debian, Ubuntu: python3-venv,
# python3-dev, build-essential), and a package index. The rest is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo
export PATH := $(BIN):$(PATH)

.PHONY: help demo test test-all test-oldest lint docs bench race asan mutants clean
.DEFAULT_GOAL := help

help:  ## these lines
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(or $(wildcard $(READY)),$(DEMO_READY))  ## train and compare: certificates, tables, pictures in out/; 10 s, and 2 to 5 minutes the first time
	$(BIN)/python examples/demo.py --out out

test: $(READY)  ## the quick tests, of every module: a few minutes
	$(BIN)/python -m pytest -m "not slow" --hypothesis-profile=quick

test-all: test  ## all tests: the quick ones, then the slow ones; a quarter of an hour on one core
	$(BIN)/python -m pytest -m "slow or hypothesis"

test-oldest:  ## all tests with the oldest versions of what apcg needs, in .venv-oldest
	$(PYTHON) tools/oldest.py

lint: $(READY)  ## check style and types
	$(BIN)/python tools/stubs.py
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

docs: $(READY)  ## build the documentation in site/, without warnings
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

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

clean:  ## remove .venv, build, out and site
	rm -rf $(VENV) build out site

# A change of a kernel needs no pip: an editable install rebuilds it when it is imported.
$(READY): pyproject.toml meson.build
	@$(PYTHON) tools/prepare.py dev
	@$(BIN)/python tools/stubs.py
	@touch $(READY)

$(DEMO_READY): pyproject.toml meson.build
	@$(PYTHON) tools/prepare.py plot
	@touch $(DEMO_READY)
