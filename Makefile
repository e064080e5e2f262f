# Targets make what they need in .venv and install nothing into the system.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1

.PHONY: help install demo test test-cluster bench lint docs clean

help:
	@echo "make demo          set up .venv, run HMAC on two MPI ranks on the bundled data, leave demo/"
	@echo "make test          set up .venv, run the tests"
	@echo "make test-cluster  the tests on a SLURM of its own (root, slurmctld installed)"
	@echo "make lint          ruff and mypy"
	@echo "make docs          the guide, docs/_build/index.html; a warning is an error"
	@echo "make bench         the figures of benchmarks/RESULTS.md"
	@echo "make clean         remove what the others made"

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --upgrade pip
	$(BIN)/python -m pip install -qq -e '.[test]'
	touch $@

demo: install
	rm -rf demo && mkdir demo
	$(BIN)/mpirun --oversubscribe -n 2 $(BIN)/parallel-mix hmac examples/ships.csv -o demo/ships.h5 \
		--row-names design --labels kind --standardize
	$(BIN)/parallel-mix info demo/ships.h5
	$(BIN)/parallel-mix export demo/ships.h5 -o demo/labels.csv
	$(BIN)/parallel-mix plot demo/ships.h5 -o demo/figures

test: install
	$(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder

test-cluster: install
	$(BIN)/python -m pytest tests/slurm

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: install
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build
	@echo "docs/_build/index.html"

bench: install
	$(BIN)/python benchmarks/hmac_speed.py
	$(BIN)/python benchmarks/figure_5_2.py
	$(BIN)/python benchmarks/distances_speed.py
	$(BIN)/python benchmarks/clusters_speed.py ranks hlm
	$(BIN)/python benchmarks/crossval_speed.py
	$(BIN)/python benchmarks/kills.py hmac

clean:
	rm -rf $(VENV) demo build dist docs/_build docs/_generated *.egg-info
