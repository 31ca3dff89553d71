# make demo   see it work: makes a virtual environment, installs, runs the demo
# make test   everything that decides whether a change lands
# make test-packages  timm, torchvision, datasets and JAX themselves
# make bench  measured ratios, written to results/
# make gallery  the figures of docs/gallery.md, drawn anew
# All of them can be repeated; what is installed already is not installed again.

# A pipe fails if its first command does.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Frozen features of CIFAR-100, which some benchmarks take if they are there.
CIFAR100_FEATURES ?= $(wildcard ../shared/data/cifar100_features.npz)

# Spinning threads slow each other down several times over on a few shared cores.
export OMP_WAIT_POLICY := PASSIVE
# Also holds in the environment that a package is built in, which -c would not.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start many processes: without compiled files each of them compiles the library again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-slow test-packages lint types layers unit bench bench-heads bench-long gallery format clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' Makefile

demo: $(VENV)/.installed
	@echo "== Running the demo"
	$(BIN)/longtail demo

test: lint types layers unit
	@echo "== Everything passed"

lint: $(VENV)/.installed-dev
	@echo "== Linting and checking the format"
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	@echo "== Checking types"
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typing/client.py

layers: $(VENV)/.installed-dev
	@echo "== Checking that folders import only lower layers"
	$(BIN)/lint-imports

unit: $(VENV)/.installed-dev
	@echo "== Running the tests and doctests"
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto

test-slow: $(VENV)/.installed-dev
	@echo "== Running the slow tests: compilation by inductor, the gallery"
	OMP_NUM_THREADS=1 $(BIN)/pytest -q -m slow --timeout 600 tests

# timm, torchvision, datasets and JAX beside the CPU build of torch that the constraints hold, in an
# environment of their own: torchvision there breaks others that try to import it.
test-packages: $(VENV)-packages/.installed
	@echo "== Running the tests with the real packages, and a second type checker"
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 \
		$(VENV)-packages/bin/pytest -q tests/packages tests/core/test_retarget.py

bench: $(VENV)/.installed-dev
	@echo "== Measuring; the tables go to results/"
	$(BIN)/python benchmarks/loss_cost.py | tee results/loss_cost.md
	$(BIN)/python benchmarks/batch_loss_cost.py | tee results/batch_loss_cost.md
	$(BIN)/python benchmarks/huge_labels.py | tee results/huge_labels.md
	$(BIN)/python benchmarks/footprint.py | tee results/footprint.md
	$(BIN)/python benchmarks/size.py | tee results/size.md
	$(BIN)/python benchmarks/tau_curve.py | tee results/tau_curve.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/tau_shrinkage.py | tee results/tau_shrinkage.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/coverage.py | tee results/coverage.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/report_size.py | tee results/report_size.md
	$(BIN)/pip install -q --no-deps --target $(VENV)/abstention abstention
	$(BIN)/python benchmarks/scores_speed.py --abstention $(VENV)/abstention \
		| tee results/scores_speed.md

bench-heads: $(VENV)/.installed-dev
	@echo "== Comparing all heads on real features; the table goes to results/"
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/heads.py | tee results/heads.md

bench-long: $(VENV)/.installed-dev
	@echo "== Measuring what takes a quarter of an hour each; the tables go to results/"
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/prior_shift.py | tee results/prior_shift.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/unlabelled.py | tee results/unlabelled.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/conformal.py | tee results/conformal.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/binary.py | tee results/binary.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/sklearn_sets.py | tee results/sklearn_sets.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/stream_scores.py | tee results/stream_scores.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/fit_memory.py | tee results/fit_memory.md
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/input_pipeline.py --steps 30 \
		| tee results/input_pipeline.md
	if test -n "$(CIFAR100_FEATURES)"; then \
		$(BIN)/python benchmarks/fit_cifar100.py $(CIFAR100_FEATURES) | tee results/fit_cifar100.md; fi
	$(BIN)/python benchmarks/convex_solver.py $(CIFAR100_FEATURES) \
		| tee results/convex_solver.md

gallery: $(VENV)/.installed-dev
	@echo "== Drawing the figures of the gallery"
	OMP_NUM_THREADS=1 $(BIN)/python docs/gallery/make.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis longtail-demo

$(BIN)/python:
	@echo "== Making a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "longtail needs Python 3.11 or later; say which with make PYTHON=..."; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "python -m venv failed; on Debian install python3-venv"; exit 1; }

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	@echo "== Installing longtail and what it needs"
	$(BIN)/pip install -q -e ".[torch]"
	@touch $@

$(VENV)-packages/.installed: pyproject.toml constraints.txt
	@echo "== Installing longtail with the packages that it works with"
	$(PYTHON) -m venv $(VENV)-packages
	$(VENV)-packages/bin/pip install -q -e ".[test]" timm torchvision datasets jax basedpyright
	@touch $@

$(VENV)/.installed-dev: $(BIN)/python pyproject.toml constraints.txt
	@echo "== Installing longtail with its development tools"
	$(BIN)/pip install -q -e ".[dev]"
	@touch $@ $(VENV)/.installed
