"""
Larger than memory
==================

X is read in blocks of rows, one after another, and only the factors stay in memory. The fit is the same.
"""

# %%
# An array on disk; these 96 MB stand for a file larger than memory. Yours is there already: npy, zarr,
# HDF5, h5ad or Parquet.
import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lognmf import LogSparseNMF, in_blocks

rng = np.random.default_rng(0)
parts = rng.gamma(1, size=(6, 1000)) * (rng.random((6, 1000)) < 0.3)
parts /= np.linalg.norm(parts, axis=1, keepdims=True)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "samples.npy"
np.save(path, rng.gamma(1, size=(12_000, 6)) @ parts + 0.01 * rng.random((12_000, 1000)))
size = path.stat().st_size

# %%
# Fit from the file, 1500 rows at a time. `PlainNMF`, `GraphNMF`, `WeightedNMF`, `LogSparseNMF` and
# `RobustLogSparseNMF` accept blocks in place of an array (:doc:`/large`).
tracemalloc.start()
blocks = in_blocks(path, rows=1_500)
model = LogSparseNMF(6, alpha=0.1, beta=0, random_state=0).fit(blocks)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
print(f"X: {size / 1e6:.0f} MB on disk; largest memory of the fit: {peak / 1e6:.0f} MB")

# %%
# The same fit in memory gives the same parts.
whole = LogSparseNMF(6, alpha=0.1, beta=0, random_state=0).fit(np.load(path))
print(f"largest difference of the parts: {abs(model.components_ - whole.components_).max():.1e}")
folder.cleanup()

# %%
# Left: every true part has its own found one (cosine near 1). Right: what was on disk, and what was held in
# memory.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
picture = left.imshow(parts @ model.components_.T, cmap="viridis", vmin=0, vmax=1)
left.set(xlabel="found part", ylabel="true part", title="Cosine of true and found parts")
figure.colorbar(picture)
sizes = {"X on disk": size / 1e6, "memory of the fit": peak / 1e6}
bars = right.barh(list(sizes), list(sizes.values()), color=["0.75", "tab:blue"])
right.bar_label(bars, fmt="%.0f MB", padding=4)
right.margins(x=0.2)
right.invert_yaxis()
right.set(xlabel="MB", title="X on disk, and peak memory of the fit")
plt.show()
