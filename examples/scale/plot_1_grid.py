"""
A grid of settings, on a CPU or a GPU
=====================================

All settings of a grid work on the same X, so `fit_grid` fits them as one wide problem, on a CPU several
times as fast as one after another. A GPU is made for such problems: :doc:`/benchmarks` has the time of the
paper's grid of 2401 settings of `RobustLogSparseNMF`.
"""

# %%
# Twenty-five settings and two seeds on the digits, from a spectral clustering. With an NVIDIA GPU give
# ``fit_grid`` also ``device="cuda"``: nothing else changes.
from sklearn.datasets import load_digits

from lognmf import LogSparseNMF, fit_grid, normalize, plots, select

digits = load_digits()
X = normalize(digits.data)
grid = {"alpha": [0.0, 0.01, 0.1, 1.0, 10.0], "lam": [0.0, 0.1, 1.0, 10.0, 100.0]}
model = LogSparseNMF(10, beta=0.0, solver="mu", init="spectral", max_iter=30, tol=0)
result = fit_grid(model, X, grid, seeds=[0, 1], n_clusters=10)
print(result)

# %%
# A row holds what is known of a fit: error, sparseness and, on the neighbour graph, how good the clusters
# are. No labels so far.
frame = result.to_pandas()
print(
    frame[["alpha", "lam", "seed", "reconstruction_err", "sparseness_U", "modularity", "balance"]]
    .head()
    .to_string()
)

# %%
# `select` ranks the settings without labels: "balanced_modularity" looks for the largest modularity among
# those that cut few edges and have clusters of even size. Labels only judge the choice here: in a second
# grid, with ``y``, rows hold the accuracy too. ``max_iter=0`` is the start: with the graph, 30 iterations
# keep the clusters of the start and add parts; without it they blur them.
best = select(result, by="balanced_modularity")
print("chosen without labels:", best.setting)
few = {"alpha": [best.setting["alpha"]], "lam": grid["lam"], "max_iter": [0, 30]}
judged = fit_grid(model, X, few, seeds=[0, 1], y=digits.target).to_pandas()
print(judged.pivot_table("accuracy", "max_iter", "lam").map("{:.1%}".format))

# %%
# The picture shows the whole grid, with a frame around the choice. From lam = 10 on the settings hardly
# differ, and alpha hardly matters.
#
# For a single fit on a GPU pass a tensor, ``LogSparseNMF(10).fit(lognmf.to_device(X))``: the work is done
# where the array is (:doc:`/gpu`).
plots.sensitivity(result, "balanced_modularity")
