"""The methods that pages name: what the names stand for, and where each is described."""

from __future__ import annotations

from collections.abc import Iterable

from lognmf.report.page import Method

PAPER = (
    "C. Peng, Y. Zhang, Y. Chen, Z. Kang, C. Chen, Q. Cheng: Log-based sparse nonnegative matrix "
    "factorization for data representation. Knowledge-Based Systems."
)
"""The paper of LS-NMF and RLS-NMF."""

_DING = (
    "C. Ding, T. Li, M. I. Jordan: Convex and semi-nonnegative matrix factorizations. IEEE TPAMI 32 (2010)."
)

_METHODS = (
    Method(
        "NMF",
        "nonnegative matrix factorisation",
        "Every sample is a sum of k nonnegative parts.",
        "D. D. Lee, H. S. Seung: Algorithms for non-negative matrix factorization. NIPS 2000.",
    ),
    Method(
        "GNMF",
        "graph-regularised NMF",
        "Neighbouring samples get similar codes.",
        "D. Cai, X. He, J. Han, T. S. Huang: Graph regularized nonnegative matrix factorization for data "
        "representation. IEEE TPAMI 33 (2011).",
    ),
    Method(
        "RMNMF",
        "robust manifold NMF",
        "Orthonormal codes, smooth along a graph, with an error that a few bad samples do not dominate.",
        "J. Huang, F. Nie, H. Huang, C. Ding: Robust manifold nonnegative matrix factorization. "
        "ACM TKDD 8 (2014).",
    ),
    Method(
        "WNMF",
        "weighted NMF",
        "Entries have weights, so that some may be missing. Without them it is NMF.",
        "Y.-D. Kim, S. Choi: Weighted nonnegative matrix factorization. ICASSP 2009.",
    ),
    Method("CNMF", "convex NMF", "Parts are nonnegative combinations of the samples.", _DING),
    Method(
        "ONMF",
        "orthogonal NMF",
        "Codes are nearly orthogonal: a sample belongs mostly to one part.",
        "C. Ding, T. Li, W. Peng, H. Park: Orthogonal nonnegative matrix tri-factorizations for clustering. "
        "KDD 2006.",
    ),
    Method(
        "Semi-NMF",
        "semi-nonnegative matrix factorisation",
        "Codes are nonnegative, parts of any sign.",
        _DING,
    ),
    Method(
        "LS-NMF",
        "log-based sparse NMF",
        "Sparse parts and codes, smooth along a graph if one is used.",
        PAPER,
    ),
    Method(
        "RLS-NMF",
        "robust log-based sparse NMF",
        "LS-NMF with an outlier part, which takes what does not fit out of single samples.",
        PAPER,
    ),
    Method("k-means", "Lloyd's algorithm", "Clusters of the samples themselves, without a factorisation."),
    Method("spectral clustering", "normalised cuts", "Clusters by the eigenvectors of the neighbour graph."),
    Method(
        "spectral start",
        "clusters of the spectral initialisation",
        "What models with `init='spectral'` start from.",
    ),
    Method(
        "NMFClustering",
        "the package's clusterer",
        "Keeps that of several clusterings with the best modularity on the neighbour graph.",
    ),
)


def spelled_out(names: Iterable[str]) -> tuple[Method, ...]:
    """The methods among ``names``, each once; a factorisation with its page in the documentation."""
    named = {name.partition(",")[0] for name in names}
    return tuple(_with_page(method) for method in _METHODS if method.name in named)


def _with_page(method: Method) -> Method:
    if not method.reference:
        return method
    page = f"`docs/methods/{method.name.lower()}.md`"
    return Method(method.name, method.title, f"{method.meaning} More in {page}.", method.reference)
