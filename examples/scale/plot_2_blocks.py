"""
Larger than memory
==================

X is read in blocks of rows, one after another, and only the factors are kept. The fit is the same as in
memory.
"""

# %%
# An array on disk. In real life it is there already: npy, zarr, HDF5, h5ad or Parquet, of any size.
import tempfile
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from lognmf import LogSparseNMF, in_blocks
from lognmf.sources import Planted

planted = Planted(12_000, 1000, 6, noise=0.2)  # samples made of six known parts
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "samples.npy"
array = np.lib.format.open_memmap(path, "w+", "float64", (12_000, 1000))
source = planted.in_blocks(rows=1_500)
for start, stop in zip(source.edges, source.edges[1:], strict=False):
    array[start:stop] = source.read(slice(start, stop))
del array

# %%
# Fit from the file, 1500 rows at a time. Five of the models take blocks in place of an array
# (:doc:`/large`).
tracemalloc.start()
blocks = in_blocks(path, rows=1_500)
model = LogSparseNMF(6, alpha=0.1, beta=0, random_state=0).fit(blocks)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
print(f"X: {path.stat().st_size / 1e6:.0f} MB on disk; largest memory of the fit: {peak / 1e6:.0f} MB")

# %%
# The same fit in memory gives the same numbers.
whole = LogSparseNMF(6, alpha=0.1, beta=0, random_state=0).fit(np.load(path))
print(f"largest difference of the parts: {abs(model.components_ - whole.components_).max():.1e}")
folder.cleanup()

# %%
# Left: every true part has its own found one (cosine near 1). Right: what was on disk, and what was held in
# memory.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
picture = left.imshow(planted.parts.T @ model.components_.T, cmap="viridis", vmin=0, vmax=1)
left.set(xlabel="found part", ylabel="true part", title="Cosine of true and found parts")
figure.colorbar(picture)
sizes = {"X on disk": 12_000 * 1000 * 8 / 1e6, "memory of the fit": peak / 1e6}
bars = right.barh(list(sizes), list(sizes.values()), color=["0.75", "tab:blue"])
right.bar_label(bars, fmt="%.0f MB", padding=4)
right.margins(x=0.2)
right.invert_yaxis()
right.set(xlabel="MB", title="Eight blocks of 1,500 rows")
plt.show()
