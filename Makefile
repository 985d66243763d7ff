# Everything runs in .venv, which the first target you call creates.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup

.PHONY: help setup demo docs linkcheck test test-long fuzz mutants browser check bench format clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.base: pyproject.toml
	@echo "Setting up dpselect in $(VENV) (about a minute the first time) ..."
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dpselect needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Name another one: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.test: $(VENV)/.base
	@echo "Installing what the tests need in $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

setup: $(VENV)/.test  ## create .venv with dpselect and everything the tests need

demo: $(VENV)/.base  ## run the main job end to end on a generated example
	@$(BIN)/dpselect demo

$(VENV)/.docs: $(VENV)/.base
	@echo "Installing what the manual needs in $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## build the manual as pages with search, in build/docs
	@echo "Building the manual ..."
	@$(BIN)/python -m sphinx -c docs -b html -q -W --keep-going . build/docs
	@echo "The manual is in build/docs: open build/docs/index.html in a browser."

linkcheck: $(VENV)/.docs  ## follow every link of the manual to elsewhere; needs a network
	@$(BIN)/python -m sphinx -c docs -b linkcheck -q . build/linkcheck

test: $(VENV)/.test browser  ## run the tests
	@echo "Running the tests ..."
	@$(PYTEST) -m "not long"

test-long: $(VENV)/.test  ## run the tests that take minutes each
	@$(PYTEST) -m long

fuzz: $(VENV)/.test  ## random tables through every source; SEED=7 MINUTES=60
	@$(BIN)/python tests/neighbours/neighbour_fuzz.py $(if $(SEED),--seed $(SEED)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(NUMBER),--number $(NUMBER)) $(if $(SOURCE),--source "$(SOURCE)")

mutants: $(VENV)/.test  ## make mistakes in the code, one at a time, and see who notices (over an hour)
	@$(BIN)/python -m mutants

# Never asks, waits for another apt for a minute at most, and gives up after a while; without Chromium some tests are skipped.
APT := apt-get -qq -o DPkg::Lock::Timeout=60 -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20
CHROMIUM := install -y --no-install-recommends -o Dpkg::Options::=--force-confold chromium

browser:
	@if ! command -v chromium >/dev/null 2>&1 && ! command -v chromium-browser >/dev/null 2>&1 && ! command -v google-chrome >/dev/null 2>&1; then \
	  if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then as_root=env; \
	  elif command -v apt-get >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as_root="sudo -n env"; \
	  else as_root=; fi; \
	  if [ -n "$$as_root" ]; then \
	    echo "Installing Chromium for the tests of the web pages (ten minutes at most) ..."; \
	    limited() { seconds=$$1; shift; $$as_root DEBIAN_FRONTEND=noninteractive timeout -k 10 $$seconds "$$@"; }; \
	    { limited 120 $(APT) update; limited 300 $(APT) --download-only $(CHROMIUM) && limited 180 $(APT) $(CHROMIUM); } </dev/null >/dev/null 2>&1 || true; \
	  fi; \
	  command -v chromium >/dev/null 2>&1 || echo "No Chromium here, and it cannot be installed: the tests of the web pages are skipped. To run them: apt-get install chromium"; \
	fi

check: $(VENV)/.test  ## lint, types, architecture and the fast tests
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(PYTEST) -q -m "not slow and not long"

bench: $(VENV)/.test  ## print speed and memory as ratios to a NumPy baseline
	@$(BIN)/python -m benchmarks

format: $(VENV)/.test  ## format the code
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

clean:  ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
