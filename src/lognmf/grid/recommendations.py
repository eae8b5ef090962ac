"""The recommended number of components, and why in words, from the rows of `choose_components`."""

from __future__ import annotations

import numpy as np

Rows = list[dict[str, float]]
"""One row for every k, smallest first."""

NEGLIGIBLE = 0.05
"""What a smaller k may explain less than the best one, as a share of what a component explains on average."""

MANY_TIMES = 1.5
"""But not if its error is more than this multiple of the smallest, and the curve is flat from some k on."""

AS_MODULAR = 0.01
"""How far below the largest modularity a clustering still counts as good as the best."""

COMPACT = 0.5
"""Mean silhouette from which clusters count as compact and far apart (Kaufman and Rousseeuw 1990)."""

AGREEMENT = 0.02
"""How far below the best stability a k still counts as stable."""


def _by_held_out(rows: Rows) -> tuple[int, str]:
    """The smallest k whose error is not clearly above the smallest."""
    least = min(rows, key=lambda row: row["held_out_error"])
    slack = NEGLIGIBLE * max(0.0, 1 - least["held_out_error"]) / least["k"]
    best = _unless_a_few_more_help(
        rows, next(i for i, row in enumerate(rows) if row["above_best"] <= max(row["above_best_se"], slack))
    )
    k, error = int(best["k"]), best["held_out_error"]
    said = f"{k} components leave {error:.3g} of the variance of held-out entries unexplained"
    if best is least:
        said += ", the least of all."
    else:
        said += f"; the least is {least['held_out_error']:.3g} with {least['k']}, not clearly better."
    return k, f"{said} {_folds_agree(best['stability'])}{_edge(k, rows)}"


def _unless_a_few_more_help(rows: Rows, first: int) -> dict[str, float]:
    """Row ``first``, or the one where the curve turns flat if that has a fraction of the error.

    Where little noise is, as in spectra, all but one part may explain 99.5 % of the variance. A curve that
    goes on falling tells nothing; flat means at least as many numbers tried after the turn as before it.
    """
    errors = [row["held_out_error"] for row in rows]
    turn = next(i for i, error in enumerate(errors) if error <= MANY_TIMES * min(errors))
    return rows[turn if first < turn and turn - first <= len(rows) - 1 - turn else first]


def _by_stability(rows: Rows) -> tuple[int, str]:
    """The largest k whose parts are about as stable as any."""
    several = [row for row in rows if row["k"] > 1]  # a single part is always stable
    most = max(row["stability"] for row in several)
    best = max((row for row in several if row["stability"] >= most - AGREEMENT), key=lambda row: row["k"])
    k = int(best["k"])
    said = f"{k} is the largest number of parts on which the folds agree as well as on any other"
    return k, f"{said} (mean cosine {best['stability']:.3f}).{_edge(k, rows)}"


def _by_modularity(rows: Rows) -> tuple[int, str]:
    """The smallest k whose clustering is about as modular as any; of compact clusters, as far apart as any.

    Splitting a compact cluster raises the modularity: within it, too, a sample's neighbours are near.
    """
    known = _known(rows, "modularity")
    apart = max(known, key=lambda row: np.nan_to_num(row["silhouette"], nan=-1.0))
    if apart["silhouette"] >= COMPACT:
        k = int(apart["k"])
        said = f"{k} clusters are compact and far apart: their mean silhouette, {apart['silhouette']:.2f}, is"
        return k, f"{said} the largest of all.{_edge(k, rows)}"
    most = max(known, key=lambda row: row["modularity"])
    best = next(row for row in known if row["modularity"] >= most["modularity"] - AS_MODULAR)
    k = int(best["k"])
    said = f"{k} clusters of the neighbour graph have modularity {best['modularity']:.3f}"
    if best is most:
        return k, f"{said}, the most of all.{_edge(k, rows)}"
    return k, f"{said}; the most is {most['modularity']:.3f} with {most['k']}, hardly more.{_edge(k, rows)}"


def _by_eigengap(rows: Rows) -> tuple[int, str]:
    """The k with the largest gap."""
    best = max(_known(rows, "eigengap"), key=lambda row: row["eigengap"])
    k = int(best["k"])
    said = f"The eigenvalues of the neighbour graph drop most after the {k}th, by {best['eigengap']:.3f}:"
    return k, f"{said} a hint at {k} clusters.{_edge(k, rows)}"


def _known(rows: Rows, column: str) -> Rows:
    """Rows of several clusters for which the graph has the eigenvalues; an error if there is none."""
    known = [row for row in rows if row["k"] > 1 and not np.isnan(row[column])]
    if not known:
        msg = f"ks must hold numbers from 2 on for which the neighbour graph has {column}: try smaller ones."
        raise ValueError(msg)
    return known


def _folds_agree(stability: float) -> str:
    """The stability in words."""
    if stability >= 1 - AGREEMENT:
        return "All folds find the same parts."
    return f"Parts of different folds have a mean cosine of {stability:.2f}."


def _edge(k: int, rows: Rows) -> str:
    """A warning where the recommendation is the largest k that was tried."""
    return " It is the largest number that was tried: try larger ones." if k == rows[-1]["k"] else ""


RECOMMENDATIONS = {
    "held_out": _by_held_out,
    "stability": _by_stability,
    "modularity": _by_modularity,
    "eigengap": _by_eigengap,
}
"""The recommended k and the reason from the rows, by what is gone by."""
