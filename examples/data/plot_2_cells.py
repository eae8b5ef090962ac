"""
Single cells: types and programs
================================

Counts of transcripts in single cells mix two things: what type a cell is, and what it is doing. A
factorisation separates them into *programs*, lists of genes that go up together. AnnData objects
(``pip install anndata``) can be fitted directly.
"""

# %%
# 900 simulated cells of four types, which are easy to tell apart. Each type has genes of its own; cells of
# every type may also be dividing, which is a program on top.
import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

from lognmf import LogSparseNMF, NMFClustering, metrics

rng = np.random.default_rng(0)
types = ["T cell", "B cell", "monocyte", "NK cell"]
n, p = 900, 400
kind = rng.integers(4, size=n)
dividing = rng.random(n) < 0.25
base = rng.gamma(0.6, 0.4, size=p)
rates = np.tile(base, (n, 1))
for number in range(4):
    own = slice(30 * number, 30 * (number + 1))
    rates[kind == number, own] += rng.gamma(2, 2, size=30)
rates[dividing, 120:150] += rng.gamma(2, 2, size=30)
depth = rng.lognormal(0, 0.3, size=(n, 1))
counts = rng.poisson(rates * depth * rng.gamma(5, 0.2, size=(n, p)))
genes = [f"{t.split()[0]}_{i}" for t in types for i in range(30)] + [f"DIVISION_{i}" for i in range(30)]
genes += [f"OTHER_{i}" for i in range(p - len(genes))]
cells = anndata.AnnData(
    sp.csr_matrix(counts.astype(np.float32)),
    obs=pd.DataFrame(
        {"type": np.array(types)[kind], "dividing": dividing}, index=[f"cell{i}" for i in range(n)]
    ),
    var=pd.DataFrame(index=genes),
)
print(cells)

# %%
# The usual steps: every cell the same total, logarithms.
per_cell = np.asarray(cells.X.sum(axis=1)).ravel()
cells.X = (sp.diags_array(np.median(per_cell) / per_cell) @ cells.X).log1p().tocsr()

# %%
# Five programs, since we know of four types and cell division. ``top_features`` names their genes.
model = LogSparseNMF(5, random_state=0).fit(cells)
for number, top in enumerate(model.top_features(6)):
    print(f"program {number}: {', '.join(top)}")
cells.obsm["X_nmf"] = model.embedding_

# %%
# Clusters come without labels, too. A cluster is what a cell *is and does* taken together, so there are
# eight: four types, dividing or not.
labels = NMFClustering(8, random_state=0).fit_predict(cells)
states = cells.obs["type"] + cells.obs["dividing"].astype(str)
print(f"cells in the right one of eight clusters: {metrics.clustering_accuracy(states, labels):.1%}")

# %%
# How much each group of cells uses each program. One program per type, and one that only dividing cells
# use, whatever their type.
groups = [(name, state) for name in types for state in (False, True)]
chosen = [(cells.obs["type"] == name) & (cells.obs["dividing"] == state) for name, state in groups]
usage = np.array([model.embedding_[np.asarray(rows)].mean(axis=0) for rows in chosen])
usage /= usage.max(axis=0)
order = usage.argmax(axis=0).argsort()  # by the group that uses a program most
figure, axes = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
picture = axes.imshow(usage[:, order], cmap="viridis", aspect="auto", vmin=0)
axes.set_yticks(range(8), [name + (", dividing" if state else "") for name, state in groups])
axes.set_xticks(range(5), [f"program {j}" for j in order])
axes.set_title("Mean use of the programs")
figure.colorbar(picture, label="relative to the largest")
plt.show()
