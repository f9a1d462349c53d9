# make demo   see what it does            make check   ruff and mypy
# make quick  tests of pure logic, 90 s   make bench   race the rivals, write bench/results.json
# make test   all a change can break      make soak    hundreds of kills, millions of draws
#
# Each target first builds the environment it needs, from pinned versions, inside this folder.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
PYTEST_ARGS ?= -n auto --dist worksteal

# The tests start hundreds of processes; each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
RIVALS := .venv-rivals
PIP_INSTALL := -m pip install -qq --no-cache-dir --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo quick test soak check format bench browser clean

help:
	@sed -n '1,6s/^# \{0,1\}//p' Makefile

demo: $(VENV)/installed
	@$(VENV)/bin/python -m sfumato demo

# No data, no files, no other process: what to run after every edit.
QUICK := tests/core tests/catalog tests/plan tests/analysis tests/release tests/test_layers.py tests/test_exports.py

quick: $(VENV)/installed
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS) -m "not long and not soak" $(QUICK)

test: $(VENV)/installed browser
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS) -m "not soak"

# Reports are looked at in a real one. As root on Debian it is installed; elsewhere its tests say what is missing.
browser: $(VENV)/installed
	@$(VENV)/bin/python tests/browser/chromium.py

soak: $(VENV)/installed
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS) -m soak

check: $(VENV)/installed
	$(VENV)/bin/python -m ruff check
	$(VENV)/bin/python -m ruff format --check
	$(VENV)/bin/python -m mypy

format: $(VENV)/installed
	$(VENV)/bin/python -m ruff check --fix
	$(VENV)/bin/python -m ruff format

bench: $(VENV)/installed $(RIVALS)/installed
	$(VENV)/bin/python bench/run.py --rivals $(RIVALS)/bin/python $(BENCH_ARGS)

# Built afresh whenever what it is built from changes, so that nothing stale survives.
$(VENV)/installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfumato needs Python 3.11 or newer; choose one: make PYTHON=python3.12 ...")'
	@echo "building $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(VENV)/bin/python $(PIP_INSTALL) -c constraints.txt hatchling editables
	@$(VENV)/bin/python $(PIP_INSTALL) -c constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

# The rivals live apart: some pin old libraries, and the package never imports them.
$(RIVALS)/installed: bench/rivals-constraints.txt
	@echo "building $(RIVALS)"
	@$(PYTHON) -m venv --clear $(RIVALS)
	@$(RIVALS)/bin/python $(PIP_INSTALL) -c bench/rivals-constraints.txt dp-accounting 'opendp[polars]' \
		multi-freq-ldpy pure-ldp scikit-learn statsmodels xxhash
	@touch $@

clean:
	rm -rf $(VENV) $(RIVALS) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist bench/results.json
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
