# Optional shortcuts; `make check` is what a change must pass.
PYTHON ?= .venv/bin/python

.PHONY: setup test lint docs golden notebooks check

setup:
	python3 -m venv .venv
	.venv/bin/python -m pip install -e '.[dev]'

test:
	$(PYTHON) -m pytest -q -n 2

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

docs:
	$(PYTHON) -m nsys_sql.docs

golden:
	$(PYTHON) -m pytest -q tests/test_golden.py --update-golden

notebooks:
	$(PYTHON) -m pip install --quiet -e '.[notebooks]'
	$(PYTHON) -m pytest -q tests/test_notebooks.py

check: lint test
	$(PYTHON) -m nsys_sql.docs --check
