"""What differs from the paper by more than 3 points, and what is changed to find out why."""

import csv
from collections import defaultdict
from dataclasses import dataclass, fields, replace
from pathlib import Path

from lognmf.paper.tables import DATASETS

ROOT = Path(__file__).parents[1]
REPRODUCTION = ROOT / "docs" / "reproduction"
RESULTS = ROOT / "benchmarks" / "results" / "differences.csv"
CLOSE = 3.0
METRICS = ("accuracy", "nmi", "purity")
LARGE = ("coil20", "eyaleb", "ar", "pendigits", "semeion", "orl")
"""Sets on which less is tried."""
HUGE = ("eyaleb", "ar")
NO_ROOT = "random, no root"
"""A random start, and updates without the square root that keeps CNMF and ONMF from overshooting."""


# What differs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """A method on one row of a table: what the paper has, and what we have."""

    table: str
    dataset: str
    level: str
    method: str
    ours: tuple[float, float, float]
    paper: tuple[float, float, float]

    @property
    def data(self):
        """Our name of the data set."""
        return DATASETS[self.dataset].name

    @property
    def off(self):
        """Metrics that are more than 3 points off."""
        return [m for m, a, b in zip(METRICS, self.ours, self.paper, strict=True) if abs(a - b) > CLOSE]

    @property
    def possible(self):
        """Whether the paper's numbers can be: purity is never below accuracy."""
        return self.paper[2] >= self.paper[0] - 0.05

    @property
    def judged(self):
        """Metrics that a change must bring near: those of numbers that can be."""
        return METRICS if self.possible else METRICS[:2]

    def distance(self, found):
        """Largest distance of three metrics to the paper's, in points."""
        paper = dict(zip(METRICS, self.paper, strict=True))
        return max(abs(found[metric] - paper[metric]) for metric in self.judged)


def groups():
    """All groups, in the order of the tables."""
    found = defaultdict(dict)
    for table in sorted((REPRODUCTION / "tables").glob("table?.csv")):
        with table.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["paper"]:
                    key = (row["table"], row["dataset"], row["level"], row["method"])
                    found[key][row["metric"]] = (float(row["ours"]), float(row["paper"]))
    made = [
        Group(*key, *(tuple(both[m][place] for m in METRICS) for place in (0, 1)))
        for key, both in found.items()
    ]
    return [group for group in made if group.off]


# What is changed -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One thing that is not as in the reproduction.

    samples: unit, raw, renormalised (unit norm again after the noise), clipped (negative entries set to
    zero instead of a shift) or the name of another data set; start and sign: of the model; draw: of the
    noise; replacement: of the removal.
    """

    samples: str = "unit"
    start: str = ""
    sign: str = ""
    draw: int = 0
    replacement: bool = True


def changes(group):
    """What is tried, in this order."""
    plain = Change()
    yield plain
    removed, gaussian = group.level.startswith("removed"), group.level.startswith("gaussian")
    if group.method == "RMNMF":
        yield replace(plain, sign="published")
    if removed or gaussian:
        yield replace(plain, draw=1)
        yield replace(plain, samples="renormalised")
    if group.method in ("LS-NMF", "RLS-NMF"):
        if group.data == "ar":
            yield replace(plain, samples="raw")
        return
    yield replace(
        plain, start="random" if group.method in ("RMNMF", "CNMF", "ONMF", "Semi-NMF") else "kmeans"
    )
    if group.method in ("CNMF", "ONMF"):
        yield replace(plain, start=NO_ROOT)
    if gaussian:
        yield replace(plain, samples="clipped")
    if removed:
        yield replace(plain, replacement=False)
    if not gaussian:
        yield replace(plain, samples="raw")
    if group.data == "jaffe":
        yield replace(plain, samples="jaffe-crop")
    if group.data == "ar":
        yield replace(plain, samples="ar-second-half")


KEY = ("data", "level", "method", *(field.name for field in fields(Change)))
"""What a measured line is known by."""
