"""What the guides print is run: every query on the example trace, every command word by word."""

import re
import shlex

import duckdb
import pytest

import nsys_sql
from conftest import ROOT
from nsys_sql import callsites, database, taxonomy
from nsys_sql.cli import cli, execute
from nsys_sql.errors import UsageError
from nsys_sql.options import Options
from tracebuilder import TraceBuilder

PAGES = sorted(path for path in (ROOT / "docs").glob("*.md"))
GUIDE = (ROOT / "docs" / "sql-guide.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def con(fixture_sqlite, tmp_path_factory):
    """The database that the guide builds, in a stock DuckDB; one session for the whole guide."""
    path = tmp_path_factory.mktemp("guide") / "example.duckdb"
    database.build(fixture_sqlite("example"), path, Options(anchor="nvtx:training_step_*"))
    with duckdb.connect(path, read_only=True) as connection:
        yield connection


@pytest.mark.parametrize("number", range(len(blocks(GUIDE, "sql"))))
def test_every_query_of_the_guide_answers(con, number):
    query = blocks(GUIDE, "sql")[number]
    result = con.execute(query)
    if not query.startswith(("SET", "RESET")):
        assert result.fetchall(), f"no rows:\n{query}"


def test_the_queries_of_the_guide_run_without_a_database_too(fixture_sqlite):
    """All but those of the two views that the page says are the database's alone."""
    lacking = []
    with nsys_sql.open(fixture_sqlite("example"), anchor="nvtx:training_step_*") as model:
        for query in blocks(GUIDE, "sql"):
            if query.startswith(("SET", "RESET")):
                continue
            try:
                assert model.query(query).fetchall()
            except UsageError as error:
                lacking.append(re.search(r"name (\w+) does not", str(error))[1])
    assert lacking == ["recipes", "notes"]
    assert "all but the views `recipes` and `notes`" in GUIDE


def test_a_kernel_of_two_nested_calls_counts_once(tmp_path):
    trace = TraceBuilder().kernel(100, 200, corr=1).call(10, 90, corr=1).call(20, 80, corr=1)
    path = trace.cuda_device(100, 0, 0).write(tmp_path / "t.sqlite")
    query = next(block for block in blocks(GUIDE, "sql") if "ahead_us" in block)
    with nsys_sql.open(path) as model:
        assert model.query(query).fetchall() == [(0, 0.08, 0.01)]


def test_the_outputs_of_the_guide_to_recipes_are_real(fixture_sqlite, tmp_path, capsys):
    guide = (ROOT / "docs" / "recipes-guide.md").read_text(encoding="utf-8")
    recipe = next(block for block in blocks(guide, "sql") if "@key" in block)
    (tmp_path / "stream_load.sql").write_text(recipe, encoding="utf-8")
    path = str(fixture_sqlite("example"))
    given = ["--base-iterations", "0:4", "--iterations", "4:8", "--result", "stream-load"]
    given += ["--recipes", str(tmp_path / "stream_load.sql"), "--jobs", "1"]
    given += ["--partitions", str(tmp_path / "parts"), "--anchor", "nvtx:training_step_*"]
    assert execute(["compare", path, path, *given]) == 0
    told = capsys.readouterr().out.splitlines()
    shown = next(block for block in blocks(guide, "text") if "delta_%" in block).splitlines()
    assert len(shown) > 8 and [line for line in shown if line != "..." and line not in told] == []


def test_the_python_of_the_survey_page_runs(fixture_sqlite, tmp_path, monkeypatch, capsys):
    path = str(fixture_sqlite("example"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranks.yaml").write_text(
        f"ranks:\n- {{trace: '{path}', rank: 0, device: 0}}\n"
        f"- {{trace: '{path}', rank: 1, device: 1}}\n"
    )
    given = ["--ranks", "ranks.yaml", "--partitions", "parts", "--jobs", "1", "-o", "survey.json"]
    assert execute(["survey", *given, "--anchor", "nvtx:training_step_*"]) == 0
    found = {}
    (block,) = blocks((ROOT / "docs" / "survey.md").read_text(encoding="utf-8"), "python")
    exec(block, found)
    assert {tile["rank"] for tile in found["tiles"]} == {0, 1}


def test_the_files_of_options_are_as_the_page_says(tmp_path):
    page = (ROOT / "docs" / "inputs.md").read_text(encoding="utf-8")
    file = tmp_path / "mine.yaml"
    file.write_text(next(block for block in blocks(page, "yaml") if "rules:" in block))
    rules = taxonomy.load_rules([file])
    assert rules.own == ("mine:1", "mine:2", "mine:3") and rules.role("physics") == "compute"
    for role, start, end in (("compute", "role compute:", ";"), ("comm", "role comm:", ";")):
        listed = re.findall(r"`(\w+)`", page[page.index(start) :].partition(end)[0])
        known = {name for name, its in taxonomy.load_rules().classes if its == role}
        assert set(listed) == known - {"graph"}
    table = page[page.index("### `--callsites") :].partition("\n### ")[0]
    for line in table.splitlines()[6:]:
        if line.startswith("| `"):
            names = re.findall(r"`([a-z ]+)`", "|".join(line.split("|")[1:3]))
            plain = tuple(name.replace(" ", "") for name in names)
            assert plain[0] and any(
                set(plain) <= set(known) for known in callsites._NAMES.values()
            ), line


def test_the_guide_answers_its_question(con):
    """The last step of the walk agrees with the recipe that it leads to, on the mean."""
    walk = next(b for b in blocks(GUIDE, "sql") if "alone_work_ms_per_iteration" in b)
    found = {(d, s): ms for d, s, ms in con.execute(walk).fetchall()}
    assert found[0, 20] == pytest.approx(10.77, abs=0.1)
    assert found[1, 20] == pytest.approx(4.7, abs=0.3)
    exposed = con.execute("SELECT mean_ms FROM budget WHERE metric = 'comm_exposed' AND device = 0")
    total = sum(ms for (device, _), ms in found.items() if device == 0)
    assert total == pytest.approx(exposed.fetchone()[0], rel=0.01)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_commands_in_the_docs_exist(page):
    for block in blocks(page.read_text(encoding="utf-8"), "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            ends = [at for at, word in enumerate(words) if word in ("&&", "|", ">", "<")]
            words = words[: min(ends, default=len(words))]
            if not words or words[0] != "nsys-sql":
                continue
            command = cli.commands[words[1]]
            known = {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}
            given = {word.partition("=")[0] for word in words[2:] if word.startswith("-")}
            assert given <= known | {"-", "--help"}, f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    anchors = {}
    for target, fragment in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", text):
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {target}"
        if fragment and path.suffix == ".md":
            if path not in anchors:
                heads = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
                anchors[path] = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in heads}
            assert fragment in anchors[path], f"{page.name} links to {target}#{fragment}"


def test_the_index_lists_every_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if f"({page.name})" not in index] == ["index.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_written_lines_are_short(page):
    text = page.read_text(encoding="utf-8")
    if "Generated by" in text:
        pytest.skip("generated")
    long = [line for line in text.splitlines() if len(line) > 110 and not line.startswith("|")]
    assert not long
