"""From a store to what was found: each number of the paper's tables, and the honest results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lognmf.models import MODELS
from lognmf.paper.honest import Spread, spread
from lognmf.paper.protocol import CONTESTANTS, best, best_of_each, paper_cell
from lognmf.paper.recipes import Entry, PaperTable, Scope, honest_cell
from lognmf.paper.reference import METRICS, published
from lognmf.paper.spec import Noise
from lognmf.paper.store import StudyStore

__all__ = ["CLOSE", "Finding", "Honest", "agreement", "counted", "findings", "honest_results"]

CLOSE = 3.0
"""Points below the paper up to which a number counts as reached."""


@dataclass(frozen=True)
class Finding:
    """One number of a table: ours beside the paper's, in percent.

    Parameters
    ----------
    table : str
        Name of the table.
    entry : Entry
        Its row.
    noise : Noise
        The noise; differs from the entry's where entries were drawn without replacement.
    metric, method : str
        What was measured, and the paper's name of the method.
    ours : float or None
        That of the setting of highest accuracy; None if it is missing.
    highest : float or None
        The highest of the whole grid in this metric alone.
    paper : float or None
        The paper's, for its own draw.
    setting : mapping
        The weights of ``ours``.
    settings : int
        How many were tried: the tickets.
    """

    table: str
    entry: Entry
    noise: Noise
    metric: str
    method: str
    ours: float | None
    highest: float | None
    paper: float | None
    setting: Mapping[str, Any]
    settings: int

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours - self.paper


def findings(table: PaperTable, scope: Scope, store: StudyStore) -> list[Finding]:
    """All numbers of a table, and of its removals without replacement."""
    return [
        finding
        for entry in table.inside(scope)
        for noise in filter(None, (entry.noise, entry.other_draw))
        for method in MODELS
        for finding in _of_method(table, entry, noise, method, scope, store)
    ]


def _of_method(
    table: PaperTable, entry: Entry, noise: Noise, method: str, scope: Scope, store: StudyStore
) -> Iterator[Finding]:
    source = paper_cell(scope.data[entry.dataset], noise, method, scope.preset)
    rows = store.rows(source)
    settings = len(source.settings())
    row = best(rows) if len(rows) == settings else None
    for metric in METRICS:
        known = published(table.label, entry.dataset, entry.level, metric, method)
        yield Finding(
            table.name,
            entry,
            noise,
            metric,
            method,
            None if row is None else 100 * row[metric],
            None if row is None else 100 * (best_of_each(rows, metric) or 0.0),
            known if noise == entry.noise else None,
            {} if row is None else {name: row[name] for name, _ in source.grid},
            settings,
        )


@dataclass(frozen=True)
class Honest:
    """A method's honest result on one row of a table, in percent.

    Parameters
    ----------
    table : str
        Name of the table.
    entry : Entry
        Its row.
    name : str
        The contestant.
    scores : mapping of str to Spread
        By metric.
    setting : mapping
        What was chosen without labels.
    """

    table: str
    entry: Entry
    name: str
    scores: Mapping[str, Spread]
    setting: Mapping[str, Any]

    @property
    def place(self) -> str:
        """The data, for pairing."""
        return f"{self.entry.dataset} {self.entry.level}"


def honest_results(table: PaperTable, scope: Scope, store: StudyStore) -> list[Honest]:
    """The honest results of a table, as far as they are there."""
    return list(_honest(table, scope, store))


def _honest(table: PaperTable, scope: Scope, store: StudyStore) -> Iterator[Honest]:
    for entry in table.inside(scope):
        for name, contestant in CONTESTANTS.items():
            if not contestant.suits(entry.noise):
                continue
            found = honest_cell(entry, contestant, scope, store)
            rows = [] if found is None else store.rows(found)
            if found is not None and len(rows) == len(found.seeds):
                percent = [{metric: 100 * row[metric] for metric in METRICS} for row in rows]
                scores = {m: s for m in METRICS if (s := spread(percent, m)) is not None}
                chosen = {weight: values[0] for weight, values in found.grid}
                yield Honest(table.name, entry, name, scores, chosen)


def counted(finding: Finding) -> bool:
    """Whether a number is one by which the two models are judged: not AR's, and not the 60 % removals."""
    heavy = finding.noise.kind == "removal" and finding.noise.level > 0.5
    return finding.entry.dataset != "AR" and not heavy


def agreement(found: Iterable[Finding], methods: Sequence[str], *, highest: bool = False) -> tuple[int, int]:
    """How many numbers of methods reach the paper's minus `CLOSE` points, and of how many.

    Parameters
    ----------
    found : iterable of Finding
        The numbers.
    methods : sequence of str
        Whose.
    highest : bool, default=False
        Whether each metric may have a setting of its own.

    Returns
    -------
    (int, int)
    """
    pairs = [(f.highest if highest else f.ours, f.paper) for f in found if f.method in methods]
    known = [ours - paper for ours, paper in pairs if ours is not None and paper is not None]
    return sum(difference >= -CLOSE for difference in known), len(known)
