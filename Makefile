# One task file for people and CI. `make demo` and `make test` need Python >= 3.11, git and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet

.PHONY: demo test lint format bench typing clean help

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "prefixscope needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --editable '.[dev]'
	touch $@

demo: $(VENV)/.installed ## audit the sample traffic
	$(BIN)/prefixscope audit sample_traces/request_log.jsonl.gz

test: $(VENV)/.installed ## run every test
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed typing ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .typing/prefixscope sample_traces tests

format: $(VENV)/.installed ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed ## figures, not tests: ratios taken side by side
	for script in tests/bench/[a-z]*.py; do $(BIN)/python $$script || exit 1; done

# setuptools' editable finder is invisible to mypy, so it gets the import namespace as symlinks
typing:
	@mkdir -p .typing/prefixscope
	@for part in otel_plugin analyzer queries dashboard; do ln -sfn ../../$$part .typing/prefixscope/$$part; done

clean: ## remove what the other targets made
	rm -rf $(VENV) .typing build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
