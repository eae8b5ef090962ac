"""A soak: many cases in many processes, resumable, with a summary by class."""

import argparse
import faulthandler
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hostile.cases import Kind, completed, draw, line, outcome, simplified
from hostile.kinds import KINDS

ROOT = Path(__file__).parents[2]
HUNG = 900
"""Seconds after which a single case counts as hung."""


def main() -> int:
    """Run one of the commands; the exit status says whether a case failed."""
    parser = argparse.ArgumentParser(prog="python -m hostile", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    soak = commands.add_parser("soak", help="run cases until all are done or the time is up")
    soak.add_argument("--minutes", type=float, default=60, help="stop after this time; run again to go on")
    soak.add_argument("--seed", type=int, default=0)
    soak.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    soak.add_argument("--kinds", default=",".join(KINDS), help="comma-separated; all unless told")
    soak.add_argument("--cases", type=int, help="cases of each kind, in place of its stated number")
    soak.add_argument("--log", type=Path, default=ROOT / "soak.jsonl")
    repeat = commands.add_parser("repeat", help="check one case, given as a failing run prints it")
    repeat.add_argument("kind", choices=KINDS)
    repeat.add_argument("case", type=json.loads)
    chunk = commands.add_parser("chunk", help="check consecutive cases, one line of JSON each")
    chunk.add_argument("kind", choices=KINDS)
    chunk.add_argument("seed", type=int)
    chunk.add_argument("first", type=int)
    chunk.add_argument("stop", type=int)
    summary = commands.add_parser("summary", help="what the soaks of this state of the code have found")
    summary.add_argument("--log", type=Path, default=ROOT / "soak.jsonl")
    given = parser.parse_args()
    if given.command == "repeat":
        return _repeat(KINDS[given.kind], completed(KINDS[given.kind], given.case))
    if given.command == "chunk":
        return _chunk(KINDS[given.kind], given.seed, range(given.first, given.stop))
    if given.command == "soak":
        _soak(given)
    return _summary(given.log)


def _repeat(kind: Kind, case: dict[str, Any]) -> int:
    word, error = outcome(kind, case)
    print(word, error or "", sep=": " if error else "")
    if error is None:
        return 0
    simplest = simplified(kind, case)
    print(
        "the simplest case that fails in this way:",
        line(kind, simplest),
        outcome(kind, simplest)[1],
        sep="\n",
    )
    return 1


def _chunk(kind: Kind, seed: int, numbers: range) -> int:
    for number in numbers:
        faulthandler.dump_traceback_later(HUNG, exit=True)
        case = draw(kind, seed, number)
        word, error = outcome(kind, case)
        found = {"class": word}
        if error is not None:
            simplest = simplified(kind, case)
            found |= {"error": error, "repeat": line(kind, case), "simplest": line(kind, simplest)}
        print(json.dumps(found), flush=True)
    return 0


def code_state() -> str:
    """A checksum of the package's source: soaks of the same state add up."""
    total = hashlib.sha256()
    for file in sorted((ROOT / "src").rglob("*.py")):
        total.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return total.hexdigest()[:12]


def _soak(given: argparse.Namespace) -> None:
    code, ends = code_state(), time.monotonic() + 60 * given.minutes
    done = {(r["kind"], r["seed"], r["first"], r["stop"]) for r in _records(given.log) if r["code"] == code}
    chunks = _chunks([KINDS[name] for name in given.kinds.split(",")], given.seed, given.cases, done)
    lock = threading.Lock()

    def work() -> None:
        while time.monotonic() < ends:
            with lock:
                chunk = next(chunks, None)
            if chunk is None:
                return
            record = {"code": code, "commit": _commit()} | _run(*chunk)
            with lock, given.log.open("a") as log:
                log.write(json.dumps(record) + "\n")
                for defect in record["defects"]:
                    print(defect, flush=True)

    workers = [threading.Thread(target=work) for _ in range(given.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def _chunks(
    kinds: list[Kind], seed: int, cases: int | None, done: set
) -> Iterator[tuple[Kind, int, int, int]]:
    """What is still to do, the kinds in step with each other."""
    ways = []
    for kind in kinds:
        total = cases or kind.soak
        starts = range(0, total, kind.chunk)
        ways += [(start / total, kind, seed, start, min(start + kind.chunk, total)) for start in starts]
    for _, kind, *where in sorted(ways, key=lambda way: way[0]):
        if (kind.name, *where) not in done:
            yield (kind, *where)


def _run(kind: Kind, seed: int, first: int, stop: int) -> dict[str, Any]:
    """The record of one chunk; a case that ends its process is a defect, and the next one goes on."""
    began = time.perf_counter()
    found: list[dict[str, Any]] = []
    while first + len(found) < stop:
        numbers = [str(n) for n in (seed, first + len(found), stop)]
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        here = {"PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])}
        ran = subprocess.run(
            [sys.executable, "-m", "hostile", "chunk", kind.name, *numbers],
            capture_output=True,
            text=True,
            env=os.environ | one_thread | here,
        )
        found += [json.loads(text) for text in ran.stdout.splitlines() if text.startswith("{")]
        if first + len(found) < stop:
            case = draw(kind, seed, first + len(found))
            error = f"the process ended with status {ran.returncode}: {ran.stderr[-2000:]}"
            found.append({"class": "defect", "error": error, "repeat": line(kind, case)})
    defects = [case for case in found if "error" in case]
    where = {"kind": kind.name, "seed": seed, "first": first, "stop": stop}
    classes = dict(Counter(case["class"] for case in found))
    return where | {"seconds": round(time.perf_counter() - began, 1), "classes": classes, "defects": defects}


def _commit() -> str:
    ran = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT)
    return ran.stdout.strip() or "unknown"


def _records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in log.read_text().splitlines()] if log.exists() else []


def _summary(log: Path) -> int:
    """Print what was found about the present state of the code: a table by kind and class."""
    records = [record for record in _records(log) if record["code"] == code_state()]
    print(f"state {code_state()}, commit {', '.join(sorted({r['commit'] for r in records})) or _commit()}")
    defects = 0
    for name in KINDS:
        ours = [record for record in records if record["kind"] == name]
        classes = sum((Counter(record["classes"]) for record in ours), Counter())
        seconds = sum(record["seconds"] for record in ours)
        defects += classes["defect"]
        cases = f"{classes.total()} cases of {KINDS[name].soak}"
        print(f"{name}: {cases}, {seconds:.0f} s, {classes['defect']} defects")
        for word, count in sorted(classes.items(), key=lambda pair: -pair[1]):
            print(f"    {count:7d} {word}")
        for defect in [d for record in ours for d in record["defects"]]:
            print(
                defect["error"].splitlines()[0][:300], defect.get("simplest", defect["repeat"]), sep="\n    "
            )
    return int(defects > 0)


if __name__ == "__main__":
    sys.exit(main())
