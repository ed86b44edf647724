"""Mutation testing of the SQL: change one operator, bound or key, and some test must fail.

    python tests/mutate.py                                   # everything: hours
    python tests/mutate.py --sample 0.1 sql/steps sql/recipes
    python tests/mutate.py --each 40,steps=100               # 40 of every folder, 100 of steps
    python tests/mutate.py sql/steps/sweep.sql --list        # only show the mutants

The tree is copied first, so nothing in the checkout is ever changed and nobody's editing disturbs a
run. One process runs the tests once, with everything they opened kept open, and notes which of
them reach which file. Then it forks for every mutant: the child puts the mutant in the place of its
file, what depends on it is made again (a model keys its tables by their text), and the tests that
reach the file run until one fails. So a mutant costs about a second, and a kill is a test of the
suite that really failed.

Outcomes: `killed`, by the named test; `timeout`, counted as killed; `survived`; `equivalent`, which
survived and is listed with a reason in tests/mutants_equivalent.yaml; and `invalid`, which DuckDB
refuses to parse or bind: no mutant at all. The score is killed / (killed + survived).
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqlmutants import Mutant, mutants

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FOLDERS = (
    *("adapters", "macros", "steps", "recipes", "notes", "invariants"),
    *("facts", "ranks", "survey", "pairs", "compare", "history"),
)
EQUIVALENT = TESTS / "mutants_equivalent.yaml"
# Test files that ask for answers within this process; the others test the command line, the files
# and the documentation around them. The first ones reach nearly everything and are quick.
MODULES = (
    *("golden", "checks_bite", "mutants", "method_cases", "oracle_agreement", "intervals"),
    *("iterations", "diagnosis", "communication", "copies", "launches", "metrics", "capture"),
    *("taxonomy", "opportunities", "timeline", "callsites", "reference", "simulator"),
    *("robustness", "engine_adapt", "engine_model", "engine_values", "small_tables"),
    *("small_steps", "small_windows", "small_recipes", "small_diagnosis", "small_adapters"),
    *("small_macros", "small_order", "small_results", "small_anchors", "small_hosts"),
)
ACROSS = (
    *("compare", "compare_changes", "survey", "small_ranks", "small_pairs", "small_noise"),
    "small_compare",
)
WORKERS = ("dask", "two_processes", "kills_its_worker")
KEPT = 100  # models that stay open though nobody uses them
MANY = 20  # files that a module or a test reads by itself; above, it looks at all of them
PASSED, KILLED, INVALID, BROKEN, LATE = range(5)
_SQL_ERRORS = ("ParserException", "BinderException", "CatalogException")


# ------------------------------------------------------------------------------- what is mutated
def catalogue(root: Path, wanted: Sequence[str]) -> dict[str, str]:
    """The text of each SQL file, by path, that lies in or is one of `wanted` (none: all)."""
    paths = (path for folder in FOLDERS for path in sorted((root / "sql" / folder).glob("*.sql")))
    found = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    keep = [each.rstrip("/") for each in wanted]
    return {
        name: text
        for name, text in found.items()
        if not keep or any(name == each or name.startswith(each + "/") for each in keep)
    }


def draw(mutant: Mutant, seed: int) -> float:
    """A number in [0, 1) that depends on what the mutant is, and on nothing else."""
    key = f"{seed} {mutant.file} {mutant.kind} {mutant.start} {mutant.text}"
    return int(hashlib.sha256(key.encode()).hexdigest()[:8], 16) / 0x1_0000_0000


def sampled(found: Sequence[Mutant], share: float, seed: int) -> list[Mutant]:
    """The mutants of a sample in the order of their draw: what is done of a run is a sample too."""
    drawn = sorted((draw(mutant, seed), mutant.file, mutant.start, mutant) for mutant in found)
    return [mutant for number, _, _, mutant in drawn if number < share]


def in_turn(drawn: Sequence[Mutant], sizes: str) -> list[Mutant]:
    """The first mutants of every folder in turn; sizes: "40,steps=100" for 40, and 100 of steps."""
    default, *others = sizes.split(",")
    limits = dict(each.split("=") for each in others)
    ahead: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in drawn:
        folder = mutant.file.split("/")[1]
        if len(ahead[folder]) < int(limits.get(folder, default)):
            ahead[folder].append(mutant)
    turns = zip_longest(*ahead.values())
    return [mutant for turn in turns for mutant in turn if mutant is not None]


def equivalents() -> set[tuple[str, str, str, str]]:
    """(file, line before, line after, next line or nothing) of what changes no answer."""
    if not EQUIVALENT.is_file():
        return set()
    listed = yaml.safe_load(EQUIVALENT.read_text(encoding="utf-8")) or []
    return {
        (each["file"], _squeeze(each["was"]), _squeeze(new), _squeeze(each.get("then", "")))
        for each in listed
        for new in (each["becomes"] if isinstance(each["becomes"], list) else [each["becomes"]])
    }


def _squeeze(text: str) -> str:
    return " ".join(text.split())


# ------------------------------------------------------------------------------- what keeps things
class Warm:
    """What the parent holds: open models by trace and options, surveys, and who reads what."""

    def __init__(self) -> None:
        self.models: dict[tuple[str, str], Any] = {}
        self.across: list[Any] = []
        self.covered: dict[str, set[str]] = defaultdict(set)
        self.direct: dict[str, set[str]] = defaultdict(set)
        self.alone: dict[str, set[str]] = defaultdict(set)
        self.item = ""
        self.is_child = False
        self.refused: set[str] = set()

    def cover(self, label: str) -> None:
        self.covered[self.item].add(label)

    def install(self) -> None:
        """Patch the package: models stay open and are found again, readers are noted."""
        import duckdb

        from nsys_sql import across, attached, catalog, history, partition, session

        connect, keep = duckdb.connect, self

        def connect_quietly(*arguments: Any, **options: Any) -> Any:
            con = connect(*arguments, **options)
            con.execute("SET threads = 1")
            con.execute("SET memory_limit = '2GB'")
            return con

        duckdb.connect = connect_quietly
        read_text = Path.read_text

        def noted_text(path: Path, *arguments: Any, **options: Any) -> str:
            if path.suffix == ".sql" and path.is_relative_to(ROOT / "sql"):
                module = keep.item.partition("::")[0]
                keep.direct[module].add(path.relative_to(ROOT).as_posix())
                keep.alone[keep.item].add(path.relative_to(ROOT).as_posix())
            return read_text(path, *arguments, **options)

        Path.read_text = noted_text  # type: ignore[method-assign]
        opened = session.open
        users: Counter[tuple[str, str]] = Counter()

        def open_again(trace: Any, options: Any = None) -> Any:
            checked = options or session.Options()
            if checked.recipes or checked.cache or checked.memory_limit or checked.temp_directory:
                return opened(trace, options)
            path = Path(trace)
            if not path.is_file() or path.suffix != ".sqlite":
                return opened(trace, options)
            told = repr(checked)
            for extra in (checked.reference_steps, checked.callsites, checked.metrics_from):
                if extra is not None and Path(extra).is_file():
                    told += hashlib.sha256(Path(extra).read_bytes()).hexdigest()
            key = (hashlib.sha256(path.read_bytes()).hexdigest(), told)
            model = keep.models.get(key)
            if model is not None and model.catalog is not catalog.load_catalog():
                return opened(trace, options)  # a test replaced the catalogue
            if model is None or model._state.is_locked:
                model = opened(trace, options)
                if any(Path(f"{path}{end}").exists() for end in ("-wal", "-shm", "-journal")):
                    return model
                model._path_before = path
                keep.models[key] = model
                users[key] = 0
            elif model._path_before != path:
                model._path = path
            users[key] += 1
            return model

        session.open = open_again
        close = session.Model.close

        def close_later(model: Any) -> None:
            kept = next((key for key, each in keep.models.items() if each is model), None)
            if kept is None or model._state.is_locked:
                close(model)
                return
            users[kept] -= 1
            keep.models[kept] = keep.models.pop(kept)  # the last one used stands last
            unused = [key for key in keep.models if users[key] <= 0]
            for key in unused[: max(0, len(unused) - KEPT)]:
                close(keep.models.pop(key))

        session.Model.close = close_later
        attached.Attached.check_unchanged = lambda self: None
        # Address space of 4 GiB for each model is more than the system lets a process fork.
        attached.keep_blocks = lambda con: None

        make, execute_file = session.Model._make, session.Model._execute_file
        run, build = across.Across._run, across.Across._build

        def noted_make(model: Any, statement: Any) -> bool:
            if statement.file is not None:
                keep.cover(statement.file.label)
            return bool(make(model, statement))

        def noted_file(model: Any, planner: Any, file: Any) -> Any:
            keep.cover(file.label)
            return execute_file(model, planner, file)

        def noted_run(self: Any, file: Any, sql: str) -> Any:
            keep.cover(file.label)
            return run(self, file, sql)

        def noted_build(self: Any, file: Any) -> None:
            keep.cover(file.label)
            for name in across.references(self.schema, across.catalog.code(file.body)):
                if name in self.sql.steps and name in self._built:
                    noted_build(self, self.sql.steps[name])
            build(self, file)

        session.Model._make, session.Model._execute_file = noted_make, noted_file
        across.Across._run, across.Across._build = noted_run, noted_build
        start = across.Across.__init__

        def kept(self: Any, *arguments: Any) -> None:
            start(self, *arguments)
            keep.across.append(self)

        across.Across.__init__ = kept
        query = history.query

        def noted_query() -> Any:
            keep.cover(query().label)
            return query()

        noted_query.cache_clear = query.cache_clear  # type: ignore[attr-defined]
        history.query = noted_query
        ensure = partition.ensure

        def noted_ensure(*arguments: Any) -> Any:
            for file in partition.fact_files():
                keep.cover(file.label)
            return ensure(*arguments)

        partition.ensure = noted_ensure

    def watch_errors(self) -> None:
        """In a child: SQL that does not parse or bind ends it, as no mutant."""
        import duckdb

        from nsys_sql import across, attached, session

        refused = tuple(getattr(duckdb, name) for name in _SQL_ERRORS)

        def watched(call: Callable[..., Any]) -> Callable[..., Any]:
            def own(*arguments: Any, **options: Any) -> Any:
                try:
                    return call(*arguments, **options)
                except refused:
                    if self.item not in self.refused:
                        os._exit(INVALID)
                    raise

            return own

        session.Model._execute = watched(session.Model._execute)
        attached.Attached.execute = watched(attached.Attached.execute)
        run = across.Across._run

        def watched_run(own: Any, file: Any, sql: str) -> Any:
            import nsys_sql

            try:
                return run(own, file, sql)
            except nsys_sql.NsysSqlError as error:
                if isinstance(error.__cause__, refused):
                    os._exit(INVALID)
                raise

        across.Across._run = watched_run

    def mutate(self, file: str, text: str, overlay: Path) -> None:
        """In a child: `text` takes the place of `file` everywhere."""
        from nsys_sql import across, catalog, history, partition, resources

        target = overlay / file
        target.unlink()
        target.write_text(text, encoding="utf-8")
        resources.root = lambda: overlay
        read_text, original = Path.read_text, ROOT / file
        Path.read_text = lambda path, *arguments, **options: (  # type: ignore[method-assign]
            text if path == original else read_text(path, *arguments, **options)
        )
        found = _with(catalog.load_catalog(), file, catalog.parse, target)
        catalog._packaged = lambda: found
        for cache in (across.files, history.query, partition.fact_files, partition._sql_digest):
            cache.cache_clear()
        for model in self.models.values():
            model.catalog = found
            model.planner = replace(model.planner, catalog=found)
            model._state.results.clear()
            model._state.checks.clear()
            model._state.objections.clear()
            model._state.objection = None
        macro = file.startswith("sql/macros/")
        for each in self.across:
            each.sql = across.files(*_folders_of(each.sql))
            try:
                for name in each._built:
                    each.con.execute(f"DROP TABLE {each.schema}.{name}")
                if macro:
                    each.con.execute(text if file.endswith("statistic.sql") else "SELECT 1")
            except Exception:  # closed by its test
                continue
            each._built.clear()


def _with(found: Any, file: str, parse: Callable[..., Any], path: Path) -> Any:
    """The catalogue with one file read anew."""
    folder = file.split("/")[1]
    if folder not in FOLDERS[:6]:
        return found
    new = parse(folder.removesuffix("s"), path)
    variants = found.variants.get(new.name, ())
    if folder == "adapters" and path.name != f"{new.name}.sql":
        changed = tuple(new if each.path.name == path.name else each for each in variants)
        return replace(found, variants={**found.variants, new.name: changed})
    return replace(found, **{folder: {**getattr(found, folder), new.name: new}})


def _folders_of(files: Any) -> tuple[str, str]:
    def folder(group: Any) -> str:
        return str(next(iter(group.values())).path.parent.name)

    return folder(files.steps), folder(files.results)


# ------------------------------------------------------------------------------------- the run
def fork() -> int:
    """os.fork(), tried again while the machine has no memory left."""
    for _ in range(60):
        try:
            return os.fork()
        except OSError:
            time.sleep(5)
    return os.fork()


def keep_fixtures() -> None:
    """Let pytest tear down what belongs to one test only: fixtures of modules stay for the next."""
    from _pytest.runner import SetupState

    def teardown_exact(self: Any, nextitem: Any) -> None:
        while self.stack:
            node, (finalizers, _) = self.stack.popitem()
            while finalizers and isinstance(node, pytest.Function):
                finalizers.pop()()

    SetupState.teardown_exact = teardown_exact  # type: ignore[method-assign]


def forget_fixtures(items: Iterable[Any], modules: Iterable[str]) -> None:
    """Have fixtures of modules made anew: what they hold came from the file that is changed."""
    for item in items:
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for definition in definitions:
                if definition.scope == "module" and definition.baseid in modules:
                    definition.cached_result = None
                    definition._finalizers.clear()


class Runner:
    """A pytest plugin that runs all tests once, then some of them for every mutant."""

    def __init__(self, arguments: argparse.Namespace, output: Path) -> None:
        self.arguments = arguments
        self.output = output
        self.warm = Warm()
        self.seconds: dict[str, float] = {}
        self.broken: set[str] = set()
        self.items: dict[str, Any] = {}
        self.order: dict[str, list[str]] = {}
        self.killers: dict[str, Counter[str]] = defaultdict(Counter)
        self.sound: dict[tuple[str, ...], int] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out tests of worker processes: those see no mutant, and do not outlive a fork."""
        items[:] = [item for item in items if not any(word in item.name for word in WORKERS)]

    def pytest_collection_finish(self) -> None:
        self.warm.install()
        keep_fixtures()

    def pytest_runtestloop(self, session: Any) -> bool:
        began = time.monotonic()
        self.items = {item.nodeid: item for item in session.items}
        for item in session.items:
            self._run(item)
        print(
            f"\n{len(self.items)} tests in {time.monotonic() - began:.0f} s, "
            f"{len(self.warm.models)} models kept; {len(self.broken)} fail without a mutant:",
            *sorted(self.broken),
            sep="\n  ",
            flush=True,
        )
        gc.collect()
        gc.freeze()
        self.warm.item = ""  # what is read from now on, no test reads
        for module in [*self.warm.direct]:
            if len(self.warm.direct[module]) > MANY:
                del self.warm.direct[module]
        for nodeid, files in self.warm.alone.items():
            if len(files) <= MANY:
                self.warm.covered[nodeid] |= files
        todo = chosen(self.arguments)
        jobs = [fork() or self._work(number, todo) for number in range(self.arguments.jobs)]
        for pid in jobs:
            os.waitpid(pid, 0)
        return True

    def _fails(self, nodeid: str) -> str:
        """Why a test fails, in a line; nothing where it passes."""
        from _pytest.runner import runtestprotocol

        self.warm.item = nodeid
        for report in runtestprotocol(self.items[nodeid], log=False, nextitem=None):
            if report.failed:
                return " ".join(report.longreprtext.split())[-300:] or "?"
        return ""

    @staticmethod
    def _quiet() -> None:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)

    def _run(self, item: Any) -> None:
        from _pytest.runner import runtestprotocol

        self.warm.item = item.nodeid
        began = time.process_time()
        reports = runtestprotocol(item, log=False, nextitem=None)
        self.seconds[item.nodeid] = time.process_time() - began
        if any(report.failed for report in reports):
            self.broken.add(item.nodeid)

    def _work(self, number: int, todo: Sequence[Mutant]) -> None:
        """One worker, a process of its own: every `jobs`-th mutant."""
        code = 1
        try:
            overlay = Path(tempfile.mkdtemp(prefix="mutate-"))
            shutil.copytree(ROOT / "sql", overlay / "sql")
            shutil.copy(ROOT / "recipes.yaml", overlay)
            with (self.output.with_suffix(f".{number}")).open("w", encoding="utf-8") as file:
                first, *more = map(float, str(self.arguments.budget).split(","))
                left = [(each, None) for each in todo[number :: self.arguments.jobs]]
                for budget in (first, *more):
                    survived = []
                    for mutant, before in left:
                        outcome = self._judge(mutant, overlay, budget, before)
                        file.write(json.dumps(outcome) + "\n")
                        file.flush()
                        if outcome["result"] == "survived":
                            survived.append((mutant, outcome))
                    left = survived
            shutil.rmtree(overlay)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _candidates(self, file: str) -> list[str]:
        """The tests that reach a file: those that killed its mutants, then the closest ones."""
        if file not in self.order:
            covered = self.warm.covered
            found = [
                nodeid
                for nodeid in self.items
                if nodeid not in self.broken and file in covered.get(nodeid, ())
            ]
            again = tuple(self._again(file))
            found += [
                nodeid
                for nodeid in self.items
                if nodeid.startswith(again) and nodeid not in {*found, *self.broken}
            ]
            found.sort(key=lambda each: (len(covered[each]) // 8, self.seconds[each], each))
            # Every fourth is one of the longest, which see most: random traces, for instance.
            longest = sorted(found, key=lambda each: (-self.seconds[each], each))
            mixed = [
                each
                for number, quick in enumerate(found)
                for each in ((quick, longest[number // 4]) if number % 4 == 0 else (quick,))
            ]
            # First of all those over small tables, and those named after the file or its folder.
            names = ("/test_small_", Path(file).stem.partition(".")[0], Path(file).parent.name)
            mixed.sort(key=lambda each: -sum(name in each for name in names))
            self.order[file] = list(dict.fromkeys(mixed))
        here, anywhere = self.killers[file], self.killers[""]
        sound = [each for each in self.order[file] if each not in self.broken]
        return sorted(sound, key=lambda each: (-here[each], -anywhere[each]))

    def _judge(
        self, mutant: Mutant, overlay: Path, budget: float, before: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """What becomes of a mutant; one that survived `before` meets the tests that are left."""
        source = (ROOT / mutant.file).read_text(encoding="utf-8")
        was, becomes = mutant.shown(source)
        candidates = self._candidates(mutant.file)
        passed = list(before["passed"]) if before else []
        left = [each for each in candidates if each not in {*passed}]
        began = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        text = mutant.apply(source)
        code, told = self._fork(mutant.file, text, overlay, left, budget)
        while code != PASSED and told and (alone := self._alone(mutant.file, told[-1], overlay)):
            # That test says the same of the file as it is, so it says nothing here.
            if alone == INVALID:
                self.warm.refused.add(told[-1])
            else:
                self.broken.add(told[-1])
                print(f"  {told[-1]} fails when it runs again", flush=True)
            passed += told[:-1]
            left = [each for each in left if each not in {*passed, *self.broken}]
            code, told = self._fork(mutant.file, text, overlay, left, budget)
        result = {PASSED: "survived", KILLED: "killed", INVALID: "invalid", LATE: "timeout"}[code]
        if result == "killed":
            self.killers[mutant.file][told[-1]] += 1
            self.killers[""][told[-1]] += 1
        spent = time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        return {
            "file": mutant.file,
            "line": mutant.line,
            "start": mutant.start,
            "kind": mutant.kind,
            "was": was,
            "becomes": becomes,
            "result": result,
            "by": told[-1] if result in ("killed", "timeout") else "",
            "passed": [*passed, *told] if result == "survived" else [],
            "of": len(candidates),
            "seconds": round(spent - began + (before["seconds"] if before else 0), 2),
        }

    def _alone(self, file: str, nodeid: str, overlay: Path) -> int:
        """What a test says when it runs again, and the file stays as it is."""
        key = (nodeid, *sorted(self._again(file)))
        if key not in self.sound:
            text = (ROOT / file).read_text(encoding="utf-8")
            self.sound[key], _ = self._fork(file, text, overlay, [nodeid], 1)
        return self.sound[key]

    def _fork(
        self, file: str, text: str, overlay: Path, candidates: Sequence[str], budget: float
    ) -> tuple[int, list[str]]:
        """Tests in a child where `text` is in the place of a file: what came out, and who ran."""
        reading, writing = os.pipe()
        pid = fork()
        if not pid:
            code = BROKEN
            try:
                os.close(reading)
                code = self._child(file, text, overlay, candidates, writing, budget)
            except BaseException:
                os.write(writing, f"! {traceback.format_exc()}".encode())
                code = BROKEN
            finally:
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            told = pipe.read().splitlines()
        _, status = os.waitpid(pid, 0)
        shutil.copy(ROOT / file, overlay / file)
        if os.WIFSIGNALED(status):
            is_late = os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
            return LATE if is_late else KILLED, told
        code = os.WEXITSTATUS(status)
        if code == BROKEN:
            raise RuntimeError("\n".join(told))
        return (code if code in (PASSED, KILLED) else INVALID), told

    def _again(self, file: str) -> set[str]:
        """The test modules that read a file themselves, so that their fixtures are made anew."""
        found = {each for each, read in self.warm.direct.items() if each and file in read}
        return found | {*ACROSS_FILES} if file.startswith("sql/facts/") else found

    def _child(
        self,
        file: str,
        text: str,
        overlay: Path,
        candidates: Sequence[str],
        writing: int,
        budget: float,
    ) -> int:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self._quiet()
        until = time.process_time() + budget
        forget_fixtures(self.items.values(), self._again(file))
        self.warm.mutate(file, text, overlay)
        self.warm.watch_errors()
        for nodeid in candidates:
            if time.process_time() > until:
                break
            os.write(writing, f"{nodeid}\n".encode())
            # A test that takes far longer than it did hangs, or joins everything with everything.
            signal.setitimer(signal.ITIMER_PROF, 10 + 10 * self.seconds[nodeid])
            signal.setitimer(signal.ITIMER_REAL, 150 + 150 * self.seconds[nodeid])
            if self._fails(nodeid):
                return KILLED
        return PASSED


ACROSS_FILES = tuple(f"tests/test_{name}.py" for name in ACROSS)


def chosen(arguments: argparse.Namespace) -> list[Mutant]:
    """The mutants that the arguments ask for, in the order in which they run."""
    files = catalogue(ROOT, arguments.files)
    everything = [mutant for file, text in files.items() for mutant in mutants(file, text)]
    found = sampled(everything, arguments.sample, arguments.seed)
    texts = catalogue(ROOT, ())
    if arguments.unseen:
        seen = {key for path in arguments.unseen.split(",") for key, _ in outcomes_of(path)}
        # A line that stands in its file more than once is nobody's.
        keys = Counter((m.file, m.kind, *m.shown(texts[m.file])) for m in everything)
        seen -= {key for key, number in keys.items() if number > 1}
        found = [m for m in found if (m.file, m.kind, *m.shown(texts[m.file])) not in seen]
    if arguments.each:
        found = in_turn(found, arguments.each)
    if arguments.again:
        before = outcomes_of(arguments.again)
        keep = {key for key, result in before if result in ("survived", "timeout")}
        found = [m for m in found if (m.file, m.kind, *m.shown(texts[m.file])) in keep]
    return found


def outcomes_of(path: str) -> list[tuple[tuple[str, str, str, str], str]]:
    """What an earlier run found: (file, kind, line before, line after), and what became of it."""
    lines = map(json.loads, Path(path).read_text(encoding="utf-8").splitlines())
    names = ("file", "kind", "was", "becomes")
    return [(tuple(each[name] for name in names), each["result"]) for each in lines]


# -------------------------------------------------------------------------------------- the score
def score(outcomes: Iterable[dict[str, Any]]) -> str:
    """A table of the score by folder, and the survivors. What is said last of a mutant counts."""
    known = equivalents()
    final = {tuple(each[name] for name in KEY): each for each in outcomes}
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    texts = catalogue(ROOT, ())
    left = []
    for each in final.values():
        result = each["result"]
        if result == "survived":
            then = _squeeze("".join(texts.get(each["file"], "").splitlines()[each["line"] :][:1]))
            if known & {(each["file"], each["was"], each["becomes"], any) for any in ("", then)}:
                result = "equivalent"
            else:
                left.append(each)
        counts[each["file"].split("/")[1]][result] += 1
    sizes: Counter[str] = Counter()
    for file, text in catalogue(ROOT, [f"sql/{folder}" for folder in counts]).items():
        sizes[file.split("/")[1]] += len(mutants(file, text))
    lines = ["| folder | of | mutants | killed | timeout | survived | equivalent | score | 95 % |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    strata = []
    for folder in FOLDERS:
        if folder not in counts:
            continue
        of = counts[folder]
        dead, alive = of["killed"] + of["timeout"], of["survived"]
        numbers = (dead + alive + of["equivalent"], of["killed"], of["timeout"], alive)
        shown = " | ".join(map(str, (sizes[folder], *numbers, of["equivalent"])))
        low, high = interval(dead, dead + alive)
        share = dead / max(1, dead + alive)
        lines.append(
            f"| {folder} | {shown} | {share:.0%} | {low:.0%}-{high:.0%} |".replace("%", " %")
        )
        strata.append((sizes[folder], share, dead + alive))
    total = sum(size for size, _, _ in strata)
    mean = sum(size * share for size, share, _ in strata) / max(1, total)
    # The error of a stratified mean; a share of 0 or 1 in a small sample is taken as less certain.
    wide = [(size, (share * n + 1) / (n + 2), n) for size, share, n in strata]
    error = sum((size / total) ** 2 * p * (1 - p) / max(1, n) for size, p, n in wide) ** 0.5
    lines.append(f"All, each folder by its size: {mean:.1%}, give or take {1.96 * error:.1%}")
    lines.append("")
    for each in left:
        tests = f"{len(each['passed'])} of {each['of']} tests"
        lines.append(f"{each['file']}:{each['line']}: {each['kind']} ({tests})")
        lines.append(f"  - {each['was']}")
        lines.append(f"  + {each['becomes']}")
    return "\n".join(lines)


KEY = ("file", "kind", "start", "was", "becomes")


def interval(dead: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not of:
        return 0.0, 1.0
    z2 = 1.96**2
    middle = (dead + z2 / 2) / (of + z2)
    half = 1.96 * math.sqrt(dead * (of - dead) / of + z2 / 4) / (of + z2)
    return middle - half, middle + half


# ----------------------------------------------------------------------------------------- command
def copy_of_the_tree(target: Path) -> None:
    """What the tests need of the checkout, so that a run sees one state of it."""
    skip = shutil.ignore_patterns("__pycache__", ".*_cache", ".git", ".venv", "*.pyc", "dist")
    for path in sorted(ROOT.iterdir()):
        if path.name in (".git", ".venv", "dist", "build"):
            continue
        if path.is_dir():
            shutil.copytree(path, target / path.name, ignore=skip)
        else:
            shutil.copy(path, target)


def main() -> int:
    """Run the mutants, or show what a run found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="SQL files or folders, from the root; all if none")
    parser.add_argument("--sample", type=float, default=1.0, help="share of the mutants (1)")
    parser.add_argument(
        "--each",
        metavar="N,steps=M",
        help="the first N mutants of each folder (M of steps), in turn",
    )
    parser.add_argument("--seed", type=int, default=1, help="which of them (1)")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time (2)")
    parser.add_argument(
        "--budget",
        default="10,50",
        help="CPU seconds of tests for each, then more for those that survived (10,50)",
    )
    parser.add_argument("--tests", help="comma list of test files to use, without test_ and .py")
    parser.add_argument("--again", metavar="FILE", help="only what survived in this outcome")
    parser.add_argument(
        "--unseen", metavar="FILES", help="comma list of outcomes: only mutants that none has"
    )
    parser.add_argument("-o", "--output", default="mutants.jsonl", help="outcomes, a line each")
    parser.add_argument("--list", action="store_true", help="only show the mutants")
    parser.add_argument(
        "--score", action="store_true", help="only show the score of the outcomes, so far"
    )
    arguments = parser.parse_args()
    output = Path(arguments.output).absolute()
    if arguments.again:
        arguments.again = str(Path(arguments.again).absolute())
    if arguments.unseen:
        paths = (Path(each).absolute() for each in arguments.unseen.split(","))
        arguments.unseen = ",".join(map(str, paths))
    if arguments.list:
        texts = catalogue(ROOT, arguments.files)
        found = chosen(arguments)
        for mutant in found:
            was, becomes = mutant.shown(texts[mutant.file])
            print(f"{mutant.file}:{mutant.line}: {mutant.kind}\n  - {was}\n  + {becomes}")
        print(len(found), "mutants")
        return 0
    if arguments.score:
        parts = [output, *output.parent.glob(f"{output.stem}.[0-9]*")]
        lines = [line for part in parts if part.is_file() for line in part.open(encoding="utf-8")]
        print(score(map(json.loads, lines)))
        return 0
    if os.environ.get("NSYS_SQL_MUTATE") != str(ROOT):
        with tempfile.TemporaryDirectory(prefix="mutate-tree-") as folder:
            copy_of_the_tree(Path(folder))
            environment = os.environ | {
                "NSYS_SQL_MUTATE": folder,
                "PYTHONPATH": folder,
                "PYTHONDONTWRITEBYTECODE": "1",
                # One thread, and no check of an extension's signature at every connection.
                "PYTEST_XDIST_WORKER": "mutate",
            }
            command = [sys.executable, f"{folder}/tests/mutate.py", *sys.argv[1:]]
            command += ["--output", str(output)]
            if arguments.again:
                command += ["--again", arguments.again]
            if arguments.unseen:
                command += ["--unseen", arguments.unseen]
            return subprocess.run(command, cwd=folder, env=environment, check=False).returncode
    return run(arguments, output)


def run(arguments: argparse.Namespace, output: Path) -> int:
    """In the copy: the tests once, then the mutants; what came out goes to `output`."""
    names = (arguments.tests or ",".join(default_tests(arguments.files))).split(",")
    paths = [f"tests/test_{name}.py" for name in names]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]
    runner = Runner(arguments, output)
    code = pytest.main([*options, *(path for path in paths if Path(path).is_file())], [runner])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return int(code)
    outcomes = []
    for number in range(arguments.jobs):
        part = output.with_suffix(f".{number}")
        outcomes += part.read_text(encoding="utf-8").splitlines()
        part.unlink()
    output.write_text("".join(f"{line}\n" for line in outcomes), encoding="utf-8")
    print(score(map(json.loads, outcomes)))
    return 0


def default_tests(files: Sequence[str]) -> tuple[str, ...]:
    """The test files for what is mutated: those about several traces only where they matter."""
    across = tuple(f"sql/{name}" for name in FOLDERS[6:])
    if files and not any(each.startswith(across) for each in files):
        return MODULES
    if files and all(each.startswith(across) for each in files):
        return ("checks_bite", "mutants", "small_tables", *ACROSS)
    return (*MODULES, *ACROSS)


if __name__ == "__main__":
    sys.exit(main())
