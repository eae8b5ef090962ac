"""Sections of the page of a fit that show its clusters, its parts and single samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lognmf import plots
from lognmf.clustering import main_parts
from lognmf.core.arrays import to_numpy
from lognmf.models.base import largest_features
from lognmf.plots.parts import shorten
from lognmf.report import Cell, Figure, Section, Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from lognmf.cli.write import Run

_FEW = 8
"""Names in a cell of a table, and samples to look at."""

_TYPICAL = 4
"""Typical samples that are named."""

_MOST_LABELS = 20
"""Labels that a table has columns for."""


class Shown:
    """What several sections show of a run."""

    def __init__(self, run: Run) -> None:
        self.run, self.data, self.model = run, run.data, run.model
        self.V, self.components = to_numpy(run.model.embedding_), to_numpy(run.model.components_)
        self.k = len(self.components)
        self.numbers, self.clusters = np.unique(run.labels, return_inverse=True)
        self.sizes = np.bincount(self.clusters)
        self.main = main_parts(self.clusters, len(self.sizes), self.V)
        self.method = (type(run.model).__doc__ or "").partition(":")[0]
        self.dense = isinstance(self.data.X, np.ndarray)
        self.readable = self.dense or sp.issparse(self.data.X)

    def name(self, i: int) -> str:
        """A sample by its name, or by its number."""
        names = self.data.sample_names
        return f"sample {i}" if names is None else str(names[i])

    def label(self, y: Any) -> str:
        """A true label in words."""
        names = self.data.class_names
        return str(y) if names is None else str(names[y])

    def typical_first(self) -> np.ndarray:
        """Samples by the distance of their codes, of unit norm, from the mean of their cluster."""
        lengths = np.linalg.norm(self.V, axis=1, keepdims=True)
        codes = self.V / np.where(lengths > 0, lengths, 1)
        sums = np.stack([np.bincount(self.clusters, column) for column in codes.T], axis=1)
        centres = sums / self.sizes[:, None]
        return np.argsort(np.linalg.norm(codes - centres[self.clusters], axis=1), kind="stable")


# Clusters ----------------------------------------------------------------------------------


def clusters(shown: Shown) -> Section:
    """Each cluster in a row, against the labels, and samples of it."""
    items: list[Table | Figure] = [_cluster_table(shown)]
    if shown.data.y is not None and (table := _against_labels(shown)) is not None:
        items.append(table)
    if (drawing := _members(shown)) is not None:
        caption = "A row for each cluster, from its most typical samples on the left to the least typical. "
        caption += "Every picture has its own scale." if shown.data.image_shape is not None else ""
        items.append(Figure("Samples of each cluster", caption.strip(), drawing))
    text = ("Labels are used for scores only.",) if shown.data.y is not None else ()
    return Section("Clusters", text, tuple(items))


def _cluster_table(shown: Shown) -> Table:
    """Size, main part, most frequent label and typical samples of each cluster, as far as they are known."""
    y, names = shown.data.y, shown.data.sample_names
    typical = shown.typical_first()
    rows = []
    for c, number in enumerate(shown.numbers):
        cells = {"samples": Cell(int(shown.sizes[c])), "main part": Cell(f"part {shown.main[c]}")}
        if y is not None:
            labels, counts = np.unique(y[shown.clusters == c], return_counts=True)
            cells["most frequent label"] = Cell(shown.label(labels[counts.argmax()]))
            cells["its share"] = Cell(100 * counts.max() / counts.sum())
        if names is not None:
            few = typical[shown.clusters[typical] == c][:_TYPICAL]
            cells["typical samples"] = Cell(", ".join(shorten(str(names[i]), 24) for i in few))
        rows.append((f"cluster {number}", cells))
    caption = "The main part has large codes in the cluster."
    caption += " Shares are in percent." if y is not None else ""
    caption += " Typical samples have codes near the mean of their cluster." if names is not None else ""
    lines = tuple((name, tuple(cells.values())) for name, cells in rows)
    return Table("All clusters", caption, tuple(rows[0][1]), lines, "cluster", ".0f", best="")


def _against_labels(shown: Shown) -> Table | None:
    """How many samples of each label are in each cluster."""
    labels, y = np.unique(np.asarray(shown.data.y), return_inverse=True)
    if len(labels) > _MOST_LABELS:
        return None
    counts = np.zeros((len(shown.sizes), len(labels)), dtype=int)
    np.add.at(counts, (shown.clusters, y), 1)
    rows = tuple(
        (f"cluster {number}", tuple(Cell(int(count)) for count in line))
        for number, line in zip(shown.numbers, counts, strict=True)
    )
    titles = tuple(map(shown.label, labels))
    caption = "Numbers of samples; the most frequent label of a cluster is underlined."
    return Table("Clusters and labels", caption, titles, rows, "cluster", ".0f", best_word="most")


def _members(shown: Shown) -> Drawing | None:
    """Samples of each cluster as pictures or lines."""
    if not shown.dense or (shown.data.image_shape is None and not shown.data.points):
        return None
    order = shown.typical_first()
    X = shown.data.X[order]
    if shown.data.image_shape is not None:
        X = X / np.maximum(np.nan_to_num(abs(X)).max(axis=1, keepdims=True), np.finfo(float).tiny)
    names = [f"cluster {number}" for number in shown.numbers]
    return plots.samples(
        X,
        shown.clusters[order],
        image_shape=shown.data.image_shape,
        class_names=names,
        points=shown.data.points,
        per_class=10 if len(names) <= 20 else 8,
    )


# Parts and codes ---------------------------------------------------------------------------


def parts(shown: Shown, drawing: Drawing) -> Section:
    """The parts in pictures and numbers."""
    caption = "In the order of the clusters that they are the main parts of."
    if shown.data.image_shape is not None:
        caption += " Each is drawn as the samples are: black is zero, and white its largest value."
    return Section("Parts", (_numbering(shown),), (Figure("All parts", caption, drawing), _part_table(shown)))


def _numbering(shown: Shown) -> str:
    own = ", and cluster 0 is that of part 0" if np.array_equal(shown.main, np.arange(shown.k)) else ""
    return (
        "Parts have the same numbers in all tables, pictures and files, and in `components_[0]` and so on"
        f"{own}."
    )


def _part_table(shown: Shown) -> Table:
    """How much of the data each part makes up, how much of it is empty, and its largest features."""
    weights = abs(shown.components).sum(axis=1) * abs(shown.V).sum(axis=0)
    shares = 100 * weights / (weights.sum() or 1.0)
    columns = {
        "share": [Cell(share) for share in shares],
        "zeros": [Cell(100 * share) for share in (shown.components == 0).mean(axis=1)],
        "samples": [Cell(int(count)) for count in (shown.V != 0).sum(axis=0)],
    }
    caption = (
        "share: of the sum of all entries of VUᵀ, in percent. zeros: among the part's entries, in percent. "
        "samples: those with a code that is not zero."
    )
    if shown.data.image_shape is None:
        words = largest_features(shown.components, shown.data.feature_names, _FEW)
        columns["largest features"] = [Cell(", ".join(names)) for names in words]
    rows = tuple((f"part {j}", cells) for j, cells in enumerate(zip(*columns.values(), strict=True)))
    form = (".1f", ".0f", ".0f", "")[: len(columns)]
    return Table("Parts in numbers", caption, tuple(columns), rows, "part", form, best="")


def codes(drawing: Drawing) -> Section:
    """A map of the samples, and their codes."""
    caption = (
        "Left: each sample is a dot, placed by its codes (first two principal axes) and coloured by cluster. "
        "Right: the codes themselves, a row for each sample and a column for each part."
    )
    return Section("Map of the samples", (), (Figure("Codes", caption, drawing),))


# Samples to look at ------------------------------------------------------------------------


def samples_to_look_at(shown: Shown) -> Section | None:
    """Outliers of a robust model, else the samples that the parts describe worst."""
    if hasattr(shown.model, "outlier_norm_"):
        title, column = "Outliers to look at", "outlier norm"
        text = "The model takes what does not fit out of these samples; outliers.csv has all of them."
        scores = to_numpy(shown.model.outlier_norm_)
    elif shown.readable:
        title, column = "Samples that fit worst", "relative error"
        text = "The parts describe these samples worst: the norm of x − Uv over that of x."
        scores = _relative_errors(shown)
    else:
        return None
    places = np.argsort(-scores, kind="stable")[:_FEW]
    places = places[scores[places] > 0]
    if not len(places):
        return Section(title, ("There are none.",))
    table = _sample_table(shown, places, column, scores)
    shape = shown.data.image_shape
    if shape is None or not shown.dense:
        return Section(title, (text,), (table,))
    X, rebuilt = shown.data.X[places], shown.V[places] @ shown.components
    pictures = {"original": X, "from the parts": rebuilt, "difference": X - rebuilt}
    caption = "Each picture has its own scale. In the differences red is positive and blue negative."
    rows = {name: part.reshape(-1, *shape) for name, part in pictures.items()}
    heads = [shorten(shown.name(i), 12) for i in places.tolist()]
    drawing = plots.pictures(rows, heads=heads, signed=["difference"])
    return Section(title, (text,), (table, Figure("The same in pictures", caption, drawing)))


def _sample_table(shown: Shown, places: np.ndarray, column: str, scores: np.ndarray) -> Table:
    """Samples with their scores, clusters and labels."""
    columns = {
        column: [Cell(float(scores[i])) for i in places],
        "cluster": [Cell(f"cluster {shown.run.labels[i]}") for i in places],
    }
    if shown.data.y is not None:
        columns["label"] = [Cell(shown.label(shown.data.y[i])) for i in places]
    rows = zip(map(shown.name, places.tolist()), zip(*columns.values(), strict=True), strict=True)
    form = (".3g", "", "")[: len(columns)]
    return Table("Samples", "", tuple(columns), tuple(rows), "sample", form, best="")


def _relative_errors(shown: Shown) -> np.ndarray:
    """Norm of x − Uv over that of x, for each sample; 0 where x is 0 or has missing entries."""
    X, U, V = shown.data.X, shown.components, shown.V
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.square(X).sum(axis=1)
    squares = np.asarray(squares).reshape(-1)
    left = squares - 2 * ((X @ U.T) * V).sum(axis=1) + ((V @ (U @ U.T)) * V).sum(axis=1)
    share = np.sqrt(np.divide(left.clip(0), squares, out=np.zeros(len(V)), where=squares > 0))
    return np.nan_to_num(share)
