"""The HTML pages of a fit, a clustering and a comparison."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from lognmf import plots
from lognmf.cli.results import squared_errors
from lognmf.clustering import main_parts
from lognmf.comparison import Row, filled_columns
from lognmf.plots.parts import shorten
from lognmf.report import Cell, Figure, Highlight, Page, Section, Table, spelled_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from lognmf.cli.results import Comparison, Run
    from lognmf.grid.tune import Tuned

_FEW = 8
"""Names in a cell of a table, and samples to look at."""

_TYPICAL = 4
"""Typical samples that are named."""

_MOST_LABELS = 20
"""Labels for which a table has columns."""

_MOST_CLASSES = 12
"""Classes from which a picture of the data shows samples."""

_WEIGHTS = ("alpha", "beta", "gamma", "lam")
_SILENT = ("verbose", "warm_start")
"""Parameters that do not affect a result."""

_IN_TABLES = ("models", "class", "parameters", "clusterer", "number")
"""Settings that a page shows in a table, or as facts of their own."""

_SEED_COLUMNS = {
    "cut": "normalized_cut", "modularity": "modularity", "balance": "balance", "objective": "objective",
}  # fmt: skip
"""What a page shows of the fits from several seeds."""

_MEANING = (
    "cut: normalised cut of the neighbour graph by the clusters, lower is better. "
    "sparse: Hoyer's sparseness of the factors. error: the norm of X − VUᵀ. "
    "seconds: from the data to the clusters, with graph, start, fit and k-means."
)

_SPREAD = ("accuracy", "normalized_cut")
"""Scores whose spread the table shows: with those of all it would be too wide."""


# A fit or a clustering -------------------------------------------------------------------


def fit_page(run: Run, summary: Mapping[str, Any], figures: Mapping[str, Drawing], folder: Path) -> Page:
    """The page of a run, its summary and its figures; ``folder`` is where the results will be."""
    shown, results = Shown(run), summary["results"]
    n, p = run.data.X.shape
    whole = "" if run.data.title in ("", run.data.name) else f"{run.data.title}: "
    clustered = run.clusterer is not None
    found = f"{len(shown.sizes)} clusters" if clustered else f"{shown.k} parts"
    how = "the best of several clusterings" if clustered else "k-means on the codes"
    how += f"; their number is {run.settings['number']}" if "number" in run.settings else ""
    mixture = f"each a mixture of {shown.k} parts by {shown.method}"
    sections = (
        clusters(shown),
        parts(shown, figures["parts"]),
        codes(figures["codes"]),
        samples_to_look_at(shown),
        _convergence(run, results, figures["convergence"]),
        _seeds(run.tuning, figures["sensitivity"]) if run.tuning is not None else None,
        _tried(run.clusterer) if clustered else None,
        _next(run, results, folder),
        _parameters(run),
    )
    return Page(
        f"{run.data.name}: {found}",
        f"{whole}{n} samples of {p} features, {mixture}. Clusters: {how}.",
        tuple(section for section in sections if section is not None),
        _facts(summary),
        tuple(_highlights(shown, results)),
        spelled_out([shown.method, "NMFClustering"] if clustered else [shown.method]),
    )


# Tiles -------------------------------------------------------------------------------------


def _highlights(shown: Shown, results: Mapping[str, Any]) -> Iterator[Highlight]:
    sizes = shown.sizes
    yield Highlight(str(len(sizes)), f"clusters of {sizes.min()} to {sizes.max()} samples")
    if "accuracy" in results:
        yield Highlight(
            f"{results['accuracy']:.1%}", "of the samples are in the cluster of their label (accuracy)"
        )
    whole = _norm(shown.data.X) if shown.readable else 0.0
    error = results["reconstruction_err"]
    if whole > 0:
        yield Highlight(f"{error / whole:.1%}", "relative error: the norm of X − VUᵀ over that of X")
    else:
        yield Highlight(f"{error:.4g}", "error: the norm of X − VUᵀ")
    zeros = [float(np.mean(factor == 0)) for factor in (shown.components, shown.V)]
    if any(zeros):
        yield Highlight(" / ".join(f"{share:.0%}" for share in zeros), "zeros in the parts / in the codes")
    if results["outliers"] is not None:
        yield Highlight(str(results["outliers"]), f"outliers among {len(shown.V)} samples")
    yield Highlight(f"{results['seconds']:.2g} s", "from the command to the clusters")


def _norm(X: Any) -> float:
    """Frobenius norm of the entries that are known."""
    values = X.data if sp.issparse(X) else X
    return float(np.sqrt(np.nansum(np.square(values, dtype=np.float64))))


# How it was found --------------------------------------------------------------------------


def _convergence(run: Run, results: Mapping[str, Any], drawing: Drawing) -> Section:
    ends = {
        "converged": "The fit has converged",
        "max_iter": "The fit stopped at its maximum number of iterations, before it had converged,",
    }
    end = ends.get(results["stop_reason"], f"The fit stopped ({results['stop_reason'].replace('_', ' ')})")
    text = f"{end} after {results['iterations']} iterations."
    if run.tuning is not None and "max_iter" in run.tuning.setting:
        text = f"The number of iterations, {results['iterations']}, was chosen with the weights."
    if run.clusterer is not None:
        text += " Only a few iterations are made here, so that the parts stay near the clusters."
    return Section("Convergence", (text,), (Figure("Objective", "", drawing),))


def _seeds(tuned: Tuned, drawing: Drawing) -> Section:
    """How weights were chosen, and how much the seeds differ at those."""
    # tuned.setting has the final gamma, which is chosen after the fits of the grid.
    chosen = [row for row in tuned.rows if all(row[name] == v for name, v in tuned.choice.setting.items())]
    columns = {
        title: key for title, key in _SEED_COLUMNS.items() if all(row.get(key) is not None for row in chosen)
    }
    rows = tuple(
        (f"seed {row['seed']}", tuple(Cell(float(row[key])) for key in columns.values())) for row in chosen
    )
    caption = (
        "The chosen weights, fitted from every seed. Smaller differences between settings are not meaningful."
    )
    spread = Table("Spread over seeds", caption, tuple(columns), rows, "seed", "#.4g", best="")
    setting = ", ".join(f"{name} {value:g}" for name, value in tuned.setting.items())
    tried = Figure("Settings that were tried", "The chosen one is marked.", drawing)
    return Section("Weights", (f"Chosen without labels: {setting}.",), (tried, spread))


def _tried(clusterer: Any) -> Section:
    """The clusterings that were tried."""
    rows = tuple(
        (
            row["candidate"],
            (
                *(Cell(row[key]) for key in ("modularity", "normalized_cut", "balance", "seconds")),
                Cell("yes" if row["chosen"] else ""),
            ),
        )
        for row in sorted(clusterer.rows_, key=lambda row: -row["modularity"])
    )
    table = Table(
        "Clusterings",
        "modularity: how many neighbours share a cluster beyond chance, higher is better. cut: normalised "
        "cut of the neighbour graph, lower is better. balance: 1 if all clusters have the same size.",
        ("modularity", "cut", "balance", "seconds", "chosen"),
        rows,
        "clustering",
        (".3f", ".3f", ".3f", ".2f", ""),
        (1, -1, 1, 0, 0),
        "column",
    )
    text = "All were scored on the neighbour graph, without labels."
    if clusterer.sample_ is not None:
        text += (
            f" {len(clusterer.sample_)} random samples were clustered; parts, objective and convergence are "
            "those of a fit to them. The other samples joined the clusters of their nearest neighbours."
        )
    return Section("Clusterings that were tried", (text,), (table,))


def _next(run: Run, results: Mapping[str, Any], folder: Path) -> Section:
    steps = next_steps(run, results, folder)
    return Section("What to try next", tuple(f"- `{command}`: {purpose}." for command, purpose in steps))


def _parameters(run: Run) -> Section:
    """The parameters of the model; weights that were chosen from the data with the value they got."""
    rows = []
    values = {name: v for name, v in run.model.get_params(deep=False).items() if name not in _SILENT}
    for name, value in values.items():
        found = getattr(run.model, f"{name}_", None) if name in _WEIGHTS and isinstance(value, str) else None
        rows.append((name, (Cell(_word(value) if found is None else f"{value}: {float(found):.4g}"),)))
    caption = f"Of {type(run.model).__name__}. After auto comes the value that was chosen from the data."
    table = Table("Parameters", caption, ("value",), tuple(rows), "parameter", ".10g", best="")
    return Section("Settings", (), (table,))


class Shown:
    """What several sections show of a run."""

    def __init__(self, run: Run) -> None:
        self.run, self.data, self.model = run, run.data, run.model
        self.V, self.components = run.model.embedding_, run.model.components_
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
    matched = np.array_equal(shown.main, np.arange(shown.k))
    text = "Parts have the same numbers in all tables, pictures and files, and in `components_[0]` and so on"
    return f"{text}{', and part 0 is the main part of cluster 0' if matched else ''}."


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
        words = shown.model.top_features(_FEW, shown.data.feature_names)
        columns["largest features"] = [Cell(", ".join(map(str, names))) for names in words]
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
        text = "These samples have the largest outlier parts; outliers.csv lists all samples."
        scores = shown.model.outlier_norm_
    elif shown.readable:
        title, column = "Samples that fit worst", "relative error"
        text = "These samples have the largest relative error, the norm of x − Uv divided by that of x."
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
    X = shown.data.X
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else np.square(X).sum(axis=1)
    squares = np.asarray(squares).reshape(-1)
    left = squared_errors(X, shown.V, shown.components)
    return np.nan_to_num(np.sqrt(np.divide(left, squares, out=np.zeros(len(left)), where=squares > 0)))


# Commands to go on with ------------------------------------------------------------------

_OF_NEW = ("transpose", "features", "layer", "resize")
"""Options that say how to read new samples as well."""

_OF_DATA = ("file", *_OF_NEW, "labels", "index", "scale_features", "no_normalize", "image_shape")
"""Options that say how to read and scale the data."""

_CHOSEN = ("components", "out", "force", "tune")
_TUNED = ("alpha", "beta", "gamma", "lam", "init", "max_iter", "n_init")
"""What --tune chooses, or uses in another way."""


def next_steps(run: Run, results: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, str]]:
    """Commands that take the data or the results of a run, and what each is for."""
    typed, X, spec = run.typed, run.data.X, run.model.spec
    k, clusters = len(run.model.components_), len(results["cluster_sizes"])
    values = X.data if sp.issparse(X) else X
    in_memory = isinstance(values, np.ndarray)
    missing = in_memory and bool(np.isnan(values).any())
    signed = in_memory and bool((values < 0).any())
    near = os.path.relpath(folder)
    where = str(folder) if near.startswith("..") else near

    def line(*names: str) -> str:
        return shlex.join(word for name in typed if name in names for word in typed[name])

    def but(*names: str) -> str:
        return line(*(typed.keys() - set(names)))

    same = line(*_OF_DATA, "model", "memory")
    if run.clusterer is not None:
        yield f"lognmf fit {same} -k {clusters}", "parts of a fit that converges, with outliers by default"
    else:
        if results["stop_reason"] == "max_iter" and "tune" not in typed:
            more = f"--force --max-iter {2 * results['iterations']}"
            yield f"lognmf fit {but('max_iter', 'force')} {more}", "go on until it has converged"
        if in_memory and "tune" not in typed and (spec.weights or "spectral" in spec.starts):
            out = shlex.quote(f"{where}-tuned")
            again = but(*_CHOSEN, *_TUNED)
            yield f"lognmf fit {again} -k {k} --tune --out {out}", "choose the weights without labels"
        if in_memory and not signed and "components" not in run.settings and min(X.shape) > 2:
            out = shlex.quote(f"{where}-auto")
            again = but(*_CHOSEN)
            yield f"lognmf fit {again} -k auto --out {out}", "choose the number of parts without labels"
        if (
            not missing
            and ("model" in typed or not signed)
            and (in_memory or not hasattr(run.model, "outliers"))
        ):
            why = "clusters by the neighbour graph instead of k-means on the codes"
            yield f"lognmf cluster {same} -k {clusters}", why
    if in_memory and not (missing or signed):
        yield f"lognmf compare {line(*_OF_DATA)} -k {k}", "all methods side by side"
    new = shlex.join([where, "NEW", *(word for name in _OF_NEW for word in typed.get(name, ()))])
    yield f"lognmf predict {new}", "clusters of the samples in a file NEW"
    yield f"lognmf transform {new}", "how much of each part is in them"


# A comparison ----------------------------------------------------------------------------


def comparison_page(
    comparison: Comparison, summary: Mapping[str, Any], figures: Mapping[str, Drawing]
) -> Page:
    """The page of a comparison, its summary and its figures: ``comparison``, and ``parts`` of pictures."""
    n = comparison.data.X.shape[0]
    k, clusters = comparison.settings["n_components"], comparison.settings["n_clusters"]
    fitted = [row for row in comparison.rows if row.error is None]
    models = [row for row in fitted if row.model in comparison.models]
    return Page(
        f"Methods compared on {comparison.data.name}",
        f"{len(models)} factorisations of the same {n} samples into {k} parts, clustered by k-means on V"
        + (", and clusterings without a factorisation." if len(fitted) > len(models) else "."),
        (
            Section("Result", tuple(_story(comparison.rows, clusters)), (_result(comparison.rows),)),
            Section("Figures", (), tuple(_figures(comparison, figures))),
            _settings({name: model["parameters"] for name, model in summary["settings"]["models"].items()}),
        ),
        _facts(summary),
        tuple(_best(comparison, fitted)),
        spelled_out(row.model for row in comparison.rows),
    )


def _best(comparison: Comparison, fitted: Sequence[Row]) -> Iterator[Highlight]:
    """The best method, the best factorisation, the data and the time."""
    models = [row for row in fitted if row.model in comparison.models]
    yield Highlight(fitted[0].model, f"is the best of {len(fitted)} methods: {_score(fitted[0])}")
    if models[0].model != fitted[0].model:
        yield Highlight(models[0].model, f"is the best of {len(models)} factorisations: {_score(models[0])}")
    n, p = comparison.data.X.shape
    yield Highlight(f"{n} × {p}", "samples × features")
    yield Highlight(f"{comparison.seconds:.1f} s", f"for {sum(row.seeds for row in fitted)} fits")


def _score(row: Row) -> str:
    if row.accuracy is not None:
        return f"accuracy {row.accuracy:.3f}"
    return f"normalised cut {row.normalized_cut:.3f}"


def _story(rows: Sequence[Row], clusters: int) -> list[str]:
    """How the table is sorted, and what it does not show."""
    if any(row.accuracy is not None for row in rows):
        order = "The methods are sorted by accuracy."
    else:
        order = (
            "There are no true labels, so the methods are sorted by the cut. "
            "A small cut suggests a good clustering but does not prove it."
        )
    order += _runs(rows)
    few = [
        f"- {row.model} has only {row.clusters} of {clusters} clusters, because V has no more distinct rows."
        for row in rows
        if row.clusters is not None and row.clusters < clusters
    ]
    return [order, *few, *(f"- {row.model} has no result. {row.error}" for row in rows if row.error)]


def _runs(rows: Sequence[Row]) -> str:
    """How often each method was run, from which start, and what to make of differences."""
    starts = sorted({row.start for row in rows if row.start is not None})
    start = "start from random numbers" if starts == ["random"] else "start as the table says"
    text = f" The models {start} and have their default weights. "
    if rows[0].seeds == 1:
        return text + "Each model was fitted from one seed, so small differences are not meaningful."
    return text + (
        f"Numbers are means over {rows[0].seeds} seeds, and ± is the standard deviation; "
        "smaller differences are not meaningful."
    )


def _result(rows: Sequence[Row]) -> Table:
    columns = filled_columns(rows)
    if "start" in columns:  # the scores come first: on a narrow page the last columns are out of sight
        columns["start"] = columns.pop("start")
    cells = tuple((row.model, tuple(_cell(row, c.field) for c in columns.values())) for row in rows)
    return Table(
        "All methods",
        _MEANING,
        tuple(columns),
        cells,
        corner="method",
        form=tuple(column.form for column in columns.values()),
        better=tuple(column.better for column in columns.values()),
        best="column",
    )


def _cell(row: Row, field: str) -> Cell:
    spread = getattr(row, f"{field}_std") if field in _SPREAD else None
    return Cell(getattr(row, field), spread=spread, note=_note(row, field))


def _note(row: Row, field: str) -> str:
    if row.error is not None:
        return row.error
    if field != "n_iter" or row.stop_reason is None:
        return ""
    return f"at most {row.max_iter}; stopped: {row.stop_reason.replace('_', ' ')}"


def _figures(comparison: Comparison, figures: Mapping[str, Drawing]) -> list[Figure]:
    data = comparison.data
    shown = [Figure("Scores and times", "The best method comes first.", figures["comparison"])]
    if "parts" in figures:
        caption = "One row per model, of the first seed; every picture has its own scale."
        shown.append(Figure("Parts", caption, figures["parts"]))
    if data.image_shape is not None and not sp.issparse(data.X):
        X, y, caption = data.X, data.y, "Samples as they were fitted."
        if y is not None:
            some = _few_classes(y)
            X, y, caption = X[some], y[some], f"{caption[:-1]}, of up to {_MOST_CLASSES} classes."
        shown.append(Figure("Data", caption, plots.samples(X, y, image_shape=data.image_shape)))
    return shown


def _few_classes(y: np.ndarray) -> np.ndarray:
    """Indices of the samples of evenly selected classes."""
    classes = np.unique(y)
    chosen = np.linspace(0, len(classes) - 1, min(len(classes), _MOST_CLASSES)).round().astype(int)
    return np.flatnonzero(np.isin(y, classes[chosen]))


def _settings(parameters: Mapping[str, Mapping[str, Any]]) -> Section:
    """The parameters that all models share, and a table of those in which they differ, by model."""
    names = dict.fromkeys(name for one in parameters.values() for name in one if name not in _SILENT)
    first, *others = parameters.values()
    alike = [name for name in names if all(one.get(name) == first.get(name) for one in others)]
    differ = sorted((name for name in names if name not in alike), key=lambda name: name not in _WEIGHTS)
    rows = tuple(
        (model, tuple(Cell(_word(one.get(name))) for name in differ)) for model, one in parameters.items()
    )
    shared = ", ".join(f"{name} {_word(first.get(name))}" for name in alike)
    text = "Each model has its default settings, except for the options of the command and the start."
    caption = "Only parameters in which the models differ."
    table = Table("Parameters", caption, tuple(differ), rows, "model", ".10g", best="")
    return Section("Settings", (text, f"The same for all: {shared}."), (table,))


def _word(value: Any) -> float | str | None:
    """A parameter as a cell shows it."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if value is None or number else str(value)


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """How the numbers were computed, in words."""
    source, settings = summary["input"], summary["settings"]
    asked = {name: value for name, value in settings.items() if name not in _IN_TABLES and value is not None}
    number = (
        {"Number of clusters": f"{asked['clusters']}, {settings['number']}"} if "number" in settings else {}
    )
    return {
        "Command": f"`{summary['command']}`",
        **number,
        "Date": summary["date"],
        "Data": "\n".join(f"{name}: {value}" for name, value in source.items() if value is not None),
        "Settings": ", ".join(f"{name} {value}" for name, value in asked.items()),
        "Versions": ", ".join(f"{name} {version}" for name, version in summary["versions"].items()),
        "Machine": summary["machine"],
    }
