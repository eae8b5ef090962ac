"""Mutation testing (`make mutants`): small faults put into the source one at a time; do the tests notice?

Each mutant is one change that cosmic-ray, or `Swap` below, makes to one file. It is tried in a private copy
of the tree: the tests of its group first, then the wider ones. It survives if all of them pass.
"""

import argparse
import ast
import difflib
import functools
import hashlib
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]

GROUPS: dict[str, tuple[str, str]] = {
    "terms": ("core/terms", "core/test_terms core/test_kullback_leibler test_norms models/test_weighted"),
    "mu": (
        "core/solvers/multiplicative core/solvers/encode",
        "core/test_multiplicative core/test_unit_norm core/test_encode core/test_kullback_leibler",
    ),
    "cd": (
        "core/solvers/coordinate",
        "core/test_coordinate core/test_escapes core/test_solvers core/test_rowwise "
        "core/test_torch_coordinate",
    ),
    "loop": ("core/loop core/problem core/rule", "core/test_loop core/test_problem core/test_rules"),
    "graph": ("graph", "graph"),
    "starts": (
        "core/starts models/starts",
        "core/test_starts models/test_kmeans_start models/test_spectral_start "
        "models/test_reproducible_starts",
    ),
    "scores": ("clustering metrics", "clustering test_metrics"),
    "grid": ("grid", "grid"),
}
"""Sources (below src/lognmf) and their own tests (below tests): files and folders."""

WIDER = "core models clustering grid graph test_metrics test_norms test_extending test_comparison hostile"
"""What is asked where a group's own tests notice nothing."""

FAMILIES = [
    {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod", "Pow"},
    {"BitAnd", "BitOr", "BitXor"},
    {"LShift", "RShift"},
    {"Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"},
    {"Is", "IsNot"},
]
"""An operator is replaced by its like only: `a & b` of two floats fails by itself."""

SWAPPED = [("argmin", "argmax"), ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("floor", "ceil")]
SWAPPED += [("ones_like", "zeros_like"), ("ones", "zeros"), ("log", "log1p")]

SIZES = re.compile(r"BLOCK|MEMORY|LANES|SHARED|_SPARE|_SHRINK|_NUMBERS_PER_START")
"""Left alone where they are set and used: sizes of pieces of work, on which no result depends."""

ENOUGH = 0.95
"""The share of mutants that the tests are to notice."""


def files(names: str, folder: str, pattern: str) -> list[str]:
    """The Python files that these names of files and folders below `folder` stand for."""
    found: list[Path] = []
    for name in names.split():
        path = ROOT / folder / name
        found += sorted(path.rglob(pattern)) if path.is_dir() else [path.with_suffix(".py")]
    # Kernels for GPUs are another language, and run where there is one.
    return [str(file.relative_to(ROOT)) for file in found if file.name != "cuda.py"]


class Swap:
    """A mutation operator that cosmic-ray lacks: a function's name becomes that of its opposite."""

    others = dict(SWAPPED) | {b: a for a, b in SWAPPED}

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "name" and node.value in self.others and node.get_next_leaf().value == "(":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = self.others[node.value]
        return node


class Mutant(NamedTuple):
    """One change of one file."""

    group: str
    file: str
    line: int
    operator: str
    occurrence: int
    key: str  # the same for the same change, also where other lines of the file have moved

    @property
    def changed(self) -> str:
        """The whole source of the file, changed."""
        from cosmic_ray.mutating import mutate_code

        operator = operators()[self.operator]
        return str(mutate_code((ROOT / self.file).read_text(), operator, self.occurrence))

    def __str__(self) -> str:
        before, after = (ROOT / self.file).read_text().splitlines(), self.changed.splitlines()
        diff = list(difflib.unified_diff(before, after, n=0, lineterm=""))[3:]
        return "\n".join([f"{self.file}:{self.line} ({self.operator})", *diff])


@functools.cache
def operators() -> dict[str, Any]:
    """The operators in use, by name."""
    from cosmic_ray.plugins import get_operator, operator_names

    kept: dict[str, Any] = {"Swap": Swap()}
    for name in operator_names():
        replaced = re.search(r"Replace(?:Binary|Comparison)Operator_(\w+)_(\w+)", name)
        if replaced:
            wanted = any(set(replaced.groups()) <= family for family in FAMILIES)
        else:  # a deleted minus or `not` says as much as a replaced one
            wanted = "RemoveDecorator" not in name and ("UnaryOperator" not in name or "_Delete_" in name)
        if wanted and not get_operator(name).arguments():
            kept[name.removeprefix("core/")] = get_operator(name)()
    return kept


def silent(node: ast.AST) -> bool:
    """Whether a change inside would alter messages, what is printed, or the size of a piece of work only."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.FunctionDef(name="__repr__"):
            return True
        case ast.Assign(targets=[ast.Name(id="msg")]) | ast.Call(func=ast.Attribute(attr="warn")):
            return True
        case ast.Assign():
            return SIZES.search(ast.unparse(node)) is not None
        case ast.If():
            return "verbose" in ast.unparse(node.test)
        case ast.keyword():
            return node.arg in ("repr", "verbose", "strict")  # the last is a check that never fires
    return False


def left_out(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Places no mutant is made in: silent ones, annotations and decorators."""
    places: list[Any] = []
    for node in ast.walk(ast.parse(source)):
        places += [node] if silent(node) else []
        places += [getattr(node, "annotation", None), getattr(node, "returns", None)]
        places += getattr(node, "decorator_list", [])
    lines = source.splitlines()

    def place(line: int, column: int) -> tuple[int, int]:
        return line, len(lines[line - 1].encode()[:column].decode())  # ast counts bytes

    return [
        (place(at.lineno, at.col_offset), place(at.end_lineno, at.end_col_offset))
        for at in places
        if at is not None
    ]


def not_binary(line: str, start: int, end: int) -> bool:
    """Whether cosmic-ray takes the star of an unpacking, or a sign of a signature, for an operator."""
    return line[:start].rstrip()[-1:] in ("", *"{([,") and not line[end : end + 1].isspace()


def mutants(group: str) -> list[Mutant]:
    """All mutants of a group."""
    from cosmic_ray.ast import ast_nodes, get_ast

    found: dict[str, Mutant] = {}
    for name in files(GROUPS[group][0], "src/lognmf", "*.py"):
        source = (ROOT / name).read_text()
        lines, quiet, nodes = source.splitlines(), left_out(source), list(ast_nodes(get_ast(source)))
        for label, operator in operators().items():
            places = [place for node in nodes for place in operator.mutation_positions(node)]
            for occurrence, (start, end) in enumerate(places):
                if any(first <= start and end <= last for first, last in quiet):
                    continue
                if "Binary" in label and not_binary(lines[start[0] - 1], start[1], end[1]):
                    continue
                key = f"{name} {label} {start[1]} {lines[start[0] - 1].strip()}"
                while key in found:  # a second change at this place, or the same line again
                    key += " again"
                found[key] = Mutant(group, name, start[0], label, occurrence, key)
    return list(found.values())


def sampled(groups: list[str], pattern: str, sample: int, seed: int) -> list[Mutant]:
    """A random sample, spread over the groups in proportion; a larger one holds the smaller ones."""
    every = {group: [m for m in mutants(group) if re.search(pattern, m.file)] for group in groups}
    total = sum(map(len, every.values()))
    share = min(1.0, sample / total) if sample else 1.0
    chosen = []
    for group, some in every.items():
        random.Random(f"{seed} {group}").shuffle(some)
        chosen += some[: round(share * len(some))]
    return chosen


FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["hypothesis", "pytest", "scipy.sparse.linalg", "sklearn.cluster", "sklearn.metrics"]
)
"""Processes that begin with what all tests import: pytest is ready at once."""


class NoShrinking:
    """A plugin of pytest: a failure is enough, Hypothesis need not spend minutes on making it small."""

    @staticmethod
    def pytest_configure(config: Any) -> None:
        from hypothesis import Phase, settings

        usual = settings.get_profile("default")
        settings.register_profile("mutants", usual, phases=[Phase.explicit, Phase.generate])
        settings.load_profile("mutants")


def run_pytest(folder: Path, names: list[str]) -> None:
    """In a process of its own: run tests of the copy in `folder`; what they print goes to its file output."""
    os.setsid()
    os.chdir(folder)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    resource.setrlimit(resource.RLIMIT_DATA, (16 << 30, 16 << 30))  # a mutant may ask for more
    resource.setrlimit(resource.RLIMIT_CPU, (3600, 3600))  # and go on for ever, also when nobody waits
    sys.path[:0] = [str(folder / "src"), str(folder / "tests")]
    os.environ |= {"PYTHONPATH": os.pathsep.join(sys.path[:2]), "NUMBA_CACHE_DIR": str(folder / "numba")}
    import pytest

    preloaded = "ignore::pytest.PytestAssertRewriteWarning"
    options = ["-x", "-q", "-p", "no:cacheprovider", "--tb=no", "-W", preloaded]
    sys.exit(pytest.main([*options, *names], plugins=[NoShrinking()]))


class Bench:
    """A private copy of the tree, in which one mutant at a time is tried."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        skip = shutil.ignore_patterns("__pycache__", ".*")
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=skip)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def tests(self, names: list[str], timeout: float | None) -> tuple[str, float]:
        """Run tests: which one failed first ("" if none), and the seconds it took."""
        began = time.monotonic()
        process = FORKS.Process(target=run_pytest, args=(self.folder, names))
        process.start()
        process.join(timeout)
        seconds = time.monotonic() - began
        if process.exitcode is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return f"no end after {seconds:.0f} s", seconds
        shown = (self.folder / "output").read_text(errors="replace")
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", shown, re.MULTILINE)
        word = failed[1] if failed else f"status {process.exitcode}: {shown[-300:]}"
        return word if process.exitcode else "", seconds

    def put(self, file: str, source: str) -> None:
        """Write a source file; nothing compiled from its last state is left."""
        path = self.folder / file
        path.write_text(source)
        for stale in path.parent.glob(f"__pycache__/{path.stem}.*"):
            stale.unlink()
        if "core/terms" in file or "coordinate" in file:  # what numba compiles
            shutil.rmtree(self.folder / "numba", ignore_errors=True)

    def tried(self, mutant: Mutant, stages: list[tuple[list[str], float]]) -> dict[str, Any]:
        """What becomes of a mutant."""
        self.put(mutant.file, mutant.changed)
        word, seconds = "", 0.0
        for names, usual in stages:
            names = sorted(names, key=lambda name: Path(mutant.file).stem not in name)
            word, more = self.tests([mutant.file, *names], max(20.0, 10 * usual))  # its doctests too
            seconds += more
            if word:
                break
        self.put(mutant.file, (ROOT / mutant.file).read_text())
        return {"killed_by": word, "seconds": round(seconds, 1)}


def state() -> str:
    """A checksum of source and tests: results hold for one state."""
    total = hashlib.sha256()
    every = {*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")} - {Path(__file__).resolve()}
    for file in sorted(every):
        total.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return total.hexdigest()[:12]


def run(todo: list[Mutant], now: str, given: argparse.Namespace) -> None:
    """Try mutants in `given.jobs` copies of the tree; each result becomes a line of the log."""
    lock = threading.Lock()
    benches: Queue[Bench] = Queue()
    with tempfile.TemporaryDirectory(prefix="lognmf-mutants-") as place:
        first = Bench(Path(place) / "0")
        usual: dict[str, list[tuple[list[str], float]]] = {}
        for group in sorted({mutant.group for mutant in todo}):
            own, wider = (files(names, "tests", "test_*.py") for names in (GROUPS[group][1], WIDER))
            first.tests(own, None)  # compiles what numba and Python keep
            usual[group] = []
            for names in [own] if given.own else [own, [name for name in wider if name not in own]]:
                word, seconds = first.tests(names, None)
                if word:
                    sys.exit(f"Without any change the tests of {group} fail: {word}")
                usual[group].append((names, seconds))
        for number in range(given.jobs):
            benches.put(first if number == 0 else Bench(Path(place) / str(number)))

        def one(mutant: Mutant) -> None:
            bench = benches.get()
            try:
                result = bench.tried(mutant, usual[mutant.group])
            finally:
                benches.put(bench)
            record = {"state": now, "own": given.own, "mutant": mutant.key} | result
            with lock, given.log.open("a") as log:
                log.write(json.dumps(record) + "\n")
                if not result["killed_by"]:
                    print(f"survived: {mutant}", flush=True)

        with ThreadPoolExecutor(given.jobs) as pool:
            list(pool.map(one, todo))


def main() -> int:
    """Try a sample of mutants and print what survived and a table."""
    parser = argparse.ArgumentParser(prog="make mutants ARGS=", description=__doc__)
    parser.add_argument("--sample", type=int, default=300, help="mutants in all; 0: every one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", default=",".join(GROUPS), help="comma-separated; all unless told")
    parser.add_argument("--files", default="", help="only files whose path matches this expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--own", action="store_true", help="ask a group's own tests only: a lower bound, sooner"
    )
    parser.add_argument("--again", action="store_true", help="only what survived before, in any state")
    parser.add_argument("--log", type=Path, default=ROOT / "mutants.jsonl")
    given = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    log = [json.loads(line) for line in given.log.read_text().splitlines()] if given.log.exists() else []
    chosen = sampled(given.groups.split(","), given.files, given.sample, given.seed)
    if given.again:
        survived = {record["mutant"] for record in log if not record["killed_by"]}
        chosen = [mutant for mutant in chosen if mutant.key in survived]
    now = state()
    done = {r["mutant"] for r in log if r["state"] == now and (r["killed_by"] or given.own >= r["own"])}
    run([mutant for mutant in chosen if mutant.key not in done], now, given)
    return report(chosen, now, given.log)


def report(chosen: list[Mutant], now: str, log: Path) -> int:
    """Print the survivors of the present state and a table; the exit status says if they are too many."""
    records = [json.loads(line) for line in log.read_text().splitlines()]
    ends = {record["mutant"]: record for record in records if record["state"] == now}
    survivors = [mutant for mutant in chosen if not ends[mutant.key]["killed_by"]]
    for mutant in survivors:
        print(f"\n{mutant}")
    print(f"\nstate {now}\n{'group':10}killed  all")
    for group in dict.fromkeys([*(mutant.group for mutant in chosen), "all"]):
        ours = [mutant for mutant in chosen if group in (mutant.group, "all")]
        killed = len(ours) - sum(group in (mutant.group, "all") for mutant in survivors)
        print(f"{group:10}{killed:6d}{len(ours):5d} {killed / max(1, len(ours)):8.1%}")
    return int(killed < ENOUGH * len(chosen))


if __name__ == "__main__":
    sys.exit(main())
