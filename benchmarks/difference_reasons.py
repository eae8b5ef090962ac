"""From measured lines to reasons: which change brings a number near the paper's, in one sentence."""

import csv
import itertools
from collections import defaultdict
from dataclasses import asdict, dataclass

import numpy as np

from difference_groups import CLOSE, KEY, METRICS, RESULTS, Change, changes


def known():
    """Lines that are there, by what was changed; NMF's serve WNMF too, which is NMF without a mask."""
    lines = defaultdict(list)
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                numbers = {name: float(row[name]) for name in (*METRICS, "nmi_geometric")}
                whole = {name: int(row[name]) for name in ("seed", "iterations", "draw", "settings")}
                lines[tuple(row[name] for name in KEY)].append({**row, **numbers, **whole})
    return lines


def key_of(group, change):
    method = "NMF" if group.method == "WNMF" else group.method
    return (group.data, group.level, method, *(str(value) for value in asdict(change).values()))


@dataclass(frozen=True)
class Attempt:
    """What one change gave: means over seeds, and how many seeds come near."""

    change: Change
    iterations: int
    read_out: str
    form: str
    means: dict
    low: dict
    high: dict
    seeds: int
    near: int
    distance: float
    settings: int
    standard: int

    @property
    def signature(self):
        """What was changed, to compare rows."""
        return self.change, self.iterations, self.read_out, self.form

    @property
    def changed(self):
        """How many things are not as in the reproduction."""
        return (
            (self.change != Change())
            + (self.iterations != self.standard)
            + (self.read_out != "k-means, 10 starts")
            + (self.form != "max")
        )


def attempts(group, lines):
    """All that was tried for a group."""
    found = []
    for change in changes(group):
        rows = lines.get(key_of(group, change), [])
        # RMNMF is looked at up to 200 iterations: its penalty has grown so far that 500 give the same.
        standard = min(500, max((row["iterations"] for row in rows), default=500))
        look = sorted({(row["iterations"], row["read_out"]) for row in rows})
        for (iterations, read_out), form in itertools.product(look, ("max", "geometric")):
            some = [row for row in rows if (row["iterations"], row["read_out"]) == (iterations, read_out)]
            if form == "geometric":
                some = [{**row, "nmi": row["nmi_geometric"]} for row in some]
            table = {metric: np.array([row[metric] for row in some]) for metric in METRICS}
            means = {metric: float(values.mean()) for metric, values in table.items()}
            near = sum(group.distance(row) <= CLOSE for row in some)
            found.append(
                Attempt(
                    change,
                    iterations,
                    read_out,
                    form,
                    means,
                    {metric: float(values.min()) for metric, values in table.items()},
                    {metric: float(values.max()) for metric, values in table.items()},
                    len(some),
                    near,
                    group.distance(means),
                    some[0]["settings"],
                    standard,
                )
            )
    return found


def verdict(group, tried, usual=None):
    """The kind of reason, and the attempt that shows it.

    "seed": nothing changed but the seed, and some seed comes within 3 points in all three metrics.
    "change": one thing changed, and the mean over the seeds comes within 3 points; ``usual``, a change that
    serves the method in many rows, goes before single lucky seeds. "lucky": one thing changed, and
    some seed does. "two": two things changed, and the mean does. "none": nothing of what was tried; the
    nearest is shown.
    """
    plain = [a for a in tried if a.changed == 0]
    seeds = [a for a in plain if a.seeds > 1]
    single = sorted((a for a in tried if a.changed == 1), key=lambda a: a.distance)
    double = sorted((a for a in tried if a.changed == 2 and a.form == "max"), key=lambda a: a.distance)
    in_usual = [a for a in single if a.signature == usual]
    rules = (
        ("seed", seeds, lambda a: a.distance <= CLOSE and a.near > 0),
        ("change", in_usual, lambda a: a.distance <= CLOSE),
        ("seed", seeds, lambda a: a.near > 0),
        ("change", single, lambda a: a.distance <= CLOSE),
        ("lucky", single, lambda a: a.near > 0),
        ("two", double, lambda a: a.distance <= CLOSE),
    )
    for kind, candidates, fits_in in rules:
        for attempt in candidates:
            if fits_in(attempt):
                return kind, attempt
    return "none", min((*plain, *single), key=lambda a: a.distance, default=None)


def services(groups, lines):
    """How many rows of a method each single change brings near in the mean, of how many tried.

    Returns
    -------
    dict of str to list of (attempt, rows brought near, the same with nothing changed, rows tried)
        By method, the most serviceable first. Only changes that were tried in at least three rows.
    """
    found = defaultdict(lambda: defaultdict(list))
    for group in groups:
        tried = attempts(group, lines)
        plain = [a.distance <= CLOSE for a in tried if a.changed == 0]
        for attempt in (a for a in tried if a.changed == 1 and plain):
            found[group.method][attempt.signature].append((attempt, attempt.distance <= CLOSE, plain[0]))
    return {
        method: sorted(
            (
                (rows[0][0], sum(near for _, near, _ in rows), sum(same for *_, same in rows), len(rows))
                for rows in by_change.values()
                if len(rows) >= 3
            ),
            key=lambda found: -found[1] / found[3],
        )
        for method, by_change in found.items()
    }


def usual_changes(served):
    """The change that explains a method: at least a third of the rows, and twice those near without it."""
    return {
        method: good[0].signature
        for method, found in served.items()
        for good in [one for one in found if one[1] >= max(3, one[3] / 3, 2 * one[2])][:1]
    }


# In words -----------------------------------------------------------------------------------


def numbers(values):
    return " / ".join(f"{values[metric]:.1f}" for metric in METRICS)


def named(attempt, words):
    """An attempt in words: what is not as in the reproduction."""
    parts = []
    for field, usual in vars(Change()).items():
        value = getattr(attempt.change, field)
        if value != usual:
            parts.append(words[f"{field} {value}"])
    if attempt.iterations != attempt.standard:
        parts.append(f"{attempt.iterations} iterations")
    if attempt.read_out != "k-means, 10 starts":
        parts.append(words[attempt.read_out])
    if attempt.form != "max":
        parts.append(words[attempt.form])
    return " and ".join(parts) or "other seeds"


def reason(group, tried, words, usual):
    """What brings a group near the paper's numbers, and how near."""
    kind, attempt = verdict(group, tried, usual)
    if attempt is None:
        return "not looked into"
    best = f", {attempt.settings} best settings" if group.method in ("LS-NMF", "RLS-NMF") else ""
    seeds = f"{attempt.seeds} seed{'s' if attempt.seeds > 1 else ''}{best}"
    if kind == "seed":
        low, high = attempt.low["accuracy"], attempt.high["accuracy"]
        text = f"the seed: accuracy {low:.1f} – {high:.1f}; {attempt.near} of {seeds}"
    elif kind in ("change", "two"):
        text = f"{named(attempt, words)}: {numbers(attempt.means)} ({seeds})"
    elif kind == "lucky":
        text = (
            f"not settled: {named(attempt, words)}, {attempt.near} of {seeds}; mean {numbers(attempt.means)}"
        )
    else:
        text = f"open; nearest: {named(attempt, words)}, {numbers(attempt.means)}"
    return text if group.possible else f"{text} †"
