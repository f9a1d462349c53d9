# make demo   see what it does            make check   ruff and mypy
# make quick  tests of pure logic, 75 s   make bench   race the rivals, write bench/results.json
# make test   all a change can break      make soak    hundreds of kills, millions of draws
# make docs   the site, in build/site     make matrix  the wheel under each Python that is there
#
# Each target first builds the environment it needs, from pinned versions, inside this folder.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
# One more than there are cores: a test often waits for a process of its own.
WORKERS := $(shell $(PYTHON) -c "import os; print(len(os.sched_getaffinity(0)) + 1)" 2>/dev/null || echo auto)
PYTEST_ARGS ?= -n $(WORKERS) --dist worksteal
# Which tests `make test` runs, by their marks. All of them in one run: make TESTS='not night' test
TESTS ?= not soak and not night

# The tests start hundreds of processes; each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
DEMO := .venv-demo
RIVALS := .venv-rivals
TUMULT := .venv-tumult
DOCS := .venv-docs
PIP_INSTALL := -m pip install -qq --no-cache-dir --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo quick test soak check format bench browser postgres java docs pictures matrix clean

help:
	@sed -n '1,7s/^# \{0,1\}//p' Makefile

demo: $(DEMO)/installed
	@$(DEMO)/bin/python -m sfumato demo

# No data, no files, no other process: what to run after every edit.
QUICK := tests/core tests/catalog tests/plan tests/analysis tests/release tests/test_layers.py tests/test_exports.py

quick: $(VENV)/installed
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS) -m "not long and not soak and not night" $(QUICK)

test: $(VENV)/installed browser postgres java
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS) -m "$(TESTS)"

# Reports are looked at in a real one. As root on Debian it is installed; elsewhere its tests say what is missing.
browser: $(VENV)/installed
	@$(VENV)/bin/python -m tests.browser.chromium

# Engines are held against a real one, started by the tests. As root on Debian it is installed, too.
postgres: $(VENV)/installed
	@$(VENV)/bin/python -m tests.conformance.server

java: $(VENV)/installed
	@$(VENV)/bin/python -m tests.conformance.spark_session

soak:
	@$(MAKE) TESTS='soak or night' test

check: $(VENV)/installed
	$(VENV)/bin/python -m ruff check
	$(VENV)/bin/python -m ruff format --check
	$(VENV)/bin/python -m mypy

format: $(VENV)/installed
	$(VENV)/bin/python -m ruff check --fix
	$(VENV)/bin/python -m ruff format

bench: $(VENV)/installed $(RIVALS)/installed $(TUMULT)/installed
	$(VENV)/bin/python bench/run.py --rivals $(RIVALS)/bin/python --tumult $(TUMULT)/bin/python $(BENCH_ARGS)

# Strict: a dead link, a page that is in no menu, or anything from another host fails.
docs: $(DOCS)/installed
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict
	@echo "open build/site/index.html; for its search: $(PYTHON) -m http.server -d build/site"

# The pictures of docs/, drawn again.
pictures: $(VENV)/installed
	$(VENV)/bin/python -m tests.pictures

# Python 3.11 to 3.13, as many of them as are found: by name, or among those of pyenv.
matrix: $(VENV)/installed
	$(VENV)/bin/python -m pytest -rs tests/test_install.py

CHECK_PYTHON := @$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sfumato needs Python 3.11 or newer; choose one: make PYTHON=python3.12 ...")'

# Built afresh whenever what it is built from changes, so that nothing stale survives.
$(VENV)/installed: pyproject.toml constraints.txt
	$(CHECK_PYTHON)
	@echo "building $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(VENV)/bin/python $(PIP_INSTALL) -c constraints.txt hatchling editables setuptools
	@$(VENV)/bin/python $(PIP_INSTALL) -c constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

# What a user installs: the package and what it needs, without the extras. Python compiles what the demo loads.
$(DEMO)/installed: pyproject.toml constraints.txt
	$(CHECK_PYTHON)
	@echo "building $(DEMO)"
	@$(PYTHON) -m venv --clear $(DEMO)
	@$(DEMO)/bin/python $(PIP_INSTALL) --no-compile -c constraints.txt hatchling editables
	@$(DEMO)/bin/python $(PIP_INSTALL) --no-compile -c constraints.txt --no-build-isolation --editable .
	@touch $@

# The rivals live apart: some pin old libraries, and the package never imports them.
$(RIVALS)/installed: bench/rivals-constraints.txt
	@echo "building $(RIVALS)"
	@$(PYTHON) -m venv --clear $(RIVALS)
	@$(RIVALS)/bin/python $(PIP_INSTALL) -c bench/rivals-constraints.txt dp-accounting 'opendp[polars]' \
		diffprivlib multi-freq-ldpy pure-ldp scikit-learn statsmodels xxhash
	@touch $@

# Tumult Analytics asks for an older Spark. It runs on ours, so all is installed as listed, whatever it asks for.
$(TUMULT)/installed: bench/tumult-constraints.txt
	@echo "building $(TUMULT)"
	@$(PYTHON) -m venv --clear $(TUMULT)
	@$(TUMULT)/bin/python $(PIP_INSTALL) --no-deps -r bench/tumult-constraints.txt
	@touch $@

# mkdocs reads the source; it does not import the package.
$(DOCS)/installed: docs/constraints.txt
	@echo "building $(DOCS)"
	@$(PYTHON) -m venv --clear $(DOCS)
	@$(DOCS)/bin/python $(PIP_INSTALL) -c docs/constraints.txt mkdocs-material mkdocstrings-python
	@touch $@

clean:
	rm -rf $(VENV) $(DEMO) $(RIVALS) $(TUMULT) $(DOCS) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist bench/results.json
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +
