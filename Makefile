# One task file for people and CI. `make demo` and `make test` need Python >= 3.11, git and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint format bench typing clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --editable '.[dev]'
	touch $@

demo: $(VENV)/.installed ## audit the sample traffic
	$(BIN)/prefixscope audit sample_traces/request_log.jsonl

test: $(VENV)/.installed ## run every test
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.installed typing ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy .typing/prefixscope

format: $(VENV)/.installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed ## figures, not tests: prints ratios taken side by side
	$(BIN)/python tests/bench/ingest.py

typing:
	mkdir -p .typing/prefixscope
	for part in otel_plugin analyzer queries; do ln -sfn ../../$$part .typing/prefixscope/$$part; done

clean:
	rm -rf $(VENV) .typing build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
