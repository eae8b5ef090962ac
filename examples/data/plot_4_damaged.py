"""
Damaged pictures, found and repaired
====================================

Some pictures of a set are damaged, and nobody says which. `RobustLogSparseNMF` splits each picture into
parts plus an *outlier part* for what does not fit. It tells which pictures are damaged, and the misfit
where. Those pixels are then treated as missing, and parts fitted to the other pictures fill them in.
"""

# %%
# 1000 drawn faces; 50 of them get a dark bar across.
import matplotlib.pyplot as plt
import numpy as np

from lognmf import LogSparseNMF, RobustLogSparseNMF

rng = np.random.default_rng(0)
y, x = np.mgrid[-1:1:32j, -1:1:32j]


def line(distance, width=0.08):
    """A soft line where ``distance`` is zero."""
    return np.exp(-((distance / width) ** 2))


face = np.hypot(x / 0.75, y / 0.95)
eyes = np.minimum(np.hypot(x - 0.3, y + 0.2), np.hypot(x + 0.3, y + 0.2))
drawn = [
    line(face - 1),
    (face < 1) * (y < -0.6) * 0.8,
    line(eyes, 0.1),
    line(eyes - 0.22, 0.05),
    line(x) * (abs(y - 0.05) < 0.15),
    line(y - 0.55 + 0.8 * x**2) * (abs(x) < 0.32),
    (face < 1) * (y > 0.72) * 0.7,
]
parts = np.array([part.ravel() for part in drawn])
strength = (rng.random((1000, 7)) < 0.6) * rng.uniform(0.5, 1, (1000, 7))
strength[:, 0] = 1
clean = strength @ parts
X = clean + 0.03 * rng.random(clean.shape)
damaged = rng.choice(1000, 50, replace=False)
for i in damaged:
    angle, offset = rng.uniform(0, np.pi), rng.uniform(-0.4, 0.4)
    bar = abs(x * np.cos(angle) + y * np.sin(angle) - offset) < 0.12
    X[i] = np.where(bar.ravel(), 1.2, X[i])

# %%
# Fit. Nothing is said about how many are damaged: ``gamma="auto"`` makes outliers of those whose misfit is
# unusual among all.
model = RobustLogSparseNMF(7, random_state=0).fit(X)
called = np.flatnonzero(model.is_outlier_)
print(f"called damaged: {len(called)}, rightly: {np.isin(called, damaged).sum()} of {len(damaged)}")

# %%
# Where are they damaged? Where they are darker than their parts say. Parts of the other pictures, fitted
# to what is left, fill the gap; NaN marks a missing pixel.
good = LogSparseNMF(7, random_state=0).fit(X[~model.is_outlier_])
misfit = X - model.inverse_transform(model.embedding_)
holes = np.where(misfit > 0.2, np.nan, X)[called]
repaired = good.inverse_transform(good.transform(holes))
for name, pictures in {"as given": X[called], "repaired": repaired}.items():
    distance = np.linalg.norm(pictures - clean[called], axis=1).mean()
    print(f"{name}: mean distance to the undamaged picture {distance:.1f}")

# %%
# From top to bottom; missing pixels are orange.
rows = {"as given": X[called], "missing pixels": holes, "repaired": repaired, "undamaged": clean[called]}
figure, places = plt.subplots(4, 7, figsize=(9, 5.3), layout="constrained")
for line, (name, pictures) in zip(places, rows.items(), strict=True):
    line[0].set_ylabel(name)
    for axes, picture in zip(line, pictures, strict=False):
        axes.set_facecolor("tab:orange")
        axes.imshow(picture.reshape(32, 32), cmap="gray_r", vmin=0, vmax=1.2)
        axes.set(xticks=[], yticks=[])
plt.show()
