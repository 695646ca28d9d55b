# Every target sets itself up: a fresh machine needs Python 3.11 or newer, make and a package index.
PYTHON3 ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help venv demo test check stubs bench zoo clean

help:
	@echo "make demo    train a small GPT on two CPU ranks, in about two minutes"
	@echo "make test    every test"
	@echo "make check   lint, format, types, layers, stubs, the table of names"
	@echo "make stubs   write the type stubs and the table of names anew, after adding an op"
	@echo "make bench   measure, side by side with torch, and write docs/benchmarks.md"
	@echo "make zoo     train models and programs of others, which it installs; write docs/models.md, docs/from-oneflow.md"
	@echo "make clean   remove what the others made"

venv: $(STAMP)

# torch goes first, alone and pinned, so that nothing else chooses its build: where the index has a CPU build of the
# pinned version, pip prefers it. The package is built with the setuptools that came with it: no second environment.
$(STAMP): pyproject.toml constraints-dev.txt
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Weft needs Python 3.11 or newer, and $(PYTHON3) is %d.%d; try: make PYTHON3=python3.12" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON3) -m venv $(VENV)
	$(PIP) install --quiet -c constraints-dev.txt torch setuptools
	$(PIP) install --quiet -c constraints-dev.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/python -m weft.launch --nproc_per_node 2 examples/demo.py

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python -m tools.stubs --check
	$(BIN)/python -m tools.surface --check

stubs: $(STAMP)
	$(BIN)/python -m tools.stubs
	$(BIN)/python -m tools.surface

bench: $(STAMP)
	$(BIN)/python -m bench

# libai and flowvision are built with tools that they don't name and that newer ones lack, and pin old versions of what
# they need: their own dependencies are what the extra names.
OLD := $(VENV)/zoo-build
zoo: $(STAMP)
	$(PIP) install --quiet -c constraints-dev.txt --no-build-isolation -e '.[dev,zoo]'
	$(PIP) install --quiet --target $(OLD) --upgrade 'setuptools<80' wheel pybind11
	PYTHONPATH=$(abspath $(OLD)) $(PIP) install --quiet --no-build-isolation --no-deps libai==0.1.1 flowvision==0.2.2
	$(BIN)/python -m tests.zoo
	$(BIN)/python -m tests.zoo.trainers
	PYTHONPATH=$(abspath $(OLD)) $(BIN)/python -m tests.zoo.programs

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
