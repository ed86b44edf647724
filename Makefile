# Optional shortcuts; `make check` is what a change must pass.
PYTHON ?= .venv/bin/python
UV ?= .venv/bin/uv

.PHONY: setup test lint docs golden notebooks lock licences check

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

# Every release that CI installs, for any platform and Python the package supports, by hash.
lock:
	$(UV) pip compile --quiet --universal --python-version 3.10 --generate-hashes \
		--upgrade --no-emit-index-url --no-emit-find-links \
		--custom-compile-command 'make lock' \
		--extra test --extra shell --extra report --extra perfetto --extra dask --extra arrow --extra notebooks \
		--output-file .ci/requirements.txt pyproject.toml .ci/build.in

licences:
	$(PYTHON) -m pip install --quiet -e '.[dev,notebooks,shell,report,perfetto,dask,arrow]'
	$(PYTHON) .ci/licences.py

check: lint test
	$(PYTHON) -m nsys_sql.docs --check
