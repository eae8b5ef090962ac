"""
A grid of settings, on a CPU or a GPU
=====================================

All settings of a grid work on the same X, so `fit_grid` fits them as one wide problem. On a CPU that is
somewhat faster than one after another. A GPU is made for such problems: one H200 fits the 2401 settings of
the paper's grid, 500 iterations each, in 6 seconds on 1440 pictures of 1024 pixels (:doc:`/benchmarks`).
"""

# %%
# Twenty-five settings and two seeds on the digits. With an NVIDIA GPU add ``device="cuda"``: nothing else
# changes.
from sklearn.datasets import load_digits

from lognmf import LogSparseNMF, fit_grid, normalize, plots, select
from lognmf.grid.select import standings

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
# `select` ranks the settings without labels. Labels only judge the choice here: in a second grid, with
# ``y``, rows hold the accuracy too.
best = select(result, by="balanced_modularity")
print("chosen without labels:", best.setting)
judged = fit_grid(
    model, X, {"alpha": [best.setting["alpha"]], "lam": [0.0, best.setting["lam"]]}, y=digits.target
)
for row in judged.rows:
    print(f"lam = {row['lam']:g}: accuracy {row['accuracy']:.1%}")

# %%
# For a single fit on a GPU hand over a tensor, ``LogSparseNMF(10).fit(to_device(X))``: the array decides
# where the work is done (:doc:`/benchmarks` has the times).
#
# The picture shows the whole grid, and where the choice fell.
plots.sensitivity(result.rows, "balanced_modularity", ranked=standings(result, "balanced_modularity"))
