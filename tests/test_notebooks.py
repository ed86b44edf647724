"""The notebooks run from top to bottom, and what they paste is what the package ships.

Running them needs the extra `notebooks`: `make notebooks`.
"""

import importlib.util
import json
import re
import textwrap

import pytest

from conftest import ROOT

NOTEBOOK = ROOT / "notebooks" / "budget.ipynb"
MARIMO = ROOT / "notebooks" / "gaps.py"


def cells():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def test_no_output_is_committed():
    for cell in cells():
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_the_pasted_recipes_are_the_shipped_ones():
    budget = (ROOT / "sql" / "recipes" / "budget.sql").read_text(encoding="utf-8").strip()
    sources = ["".join(cell["source"]) for cell in cells()]
    assert f"%%sql\n{budget}" in sources
    gaps = (ROOT / "sql" / "recipes" / "gaps.sql").read_text(encoding="utf-8").strip()
    pasted = re.search(r'gaps = mo\.sql\(\n +"""\n(.*?)\n +""",', MARIMO.read_text(), re.DOTALL)
    assert textwrap.dedent(pasted[1]) == gaps


@pytest.fixture
def quiet(monkeypatch, fixture_sqlite):
    """The example trace, and no reporting to anybody."""
    monkeypatch.setenv("NSYS_SQL_TRACE", str(fixture_sqlite("example")))
    monkeypatch.setenv("PLOOMBER_STATS_ENABLED", "false")


@pytest.mark.filterwarnings("default")
def test_the_jupyter_notebook_runs(quiet):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("sql", reason="jupysql")
    pytest.importorskip("matplotlib")
    notebook = nbformat.read(NOTEBOOK, 4)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert any("image/png" in out.get("data", {}) for out in outputs)
    texts = [out.get("data", {}).get("text/plain", "") for out in outputs]
    assert any("compute_busy" in text for text in texts)
    assert any("steady" in text for text in texts)


@pytest.mark.filterwarnings("default")
def test_the_marimo_notebook_runs(quiet, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")  # no screen; the kernel of Jupyter brings its own
    pytest.importorskip("marimo")
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("gaps_notebook", MARIMO)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, found = module.app.run()
    assert len(found["gaps"]) > 1000
    assert {"device", "blocking_ms"} <= set(found["lengths"].columns)
    assert found["figure"].axes
