"""
Damaged pictures, found and repaired
====================================

Some pictures of a set are damaged, and nobody says which. `RobustLogSparseNMF` splits each picture into
parts plus an *outlier part* for what does not fit. The outlier part tells which pictures are damaged, and
the sum of parts repairs them.
"""

# %%
# 1000 drawn faces; 50 of them get a bright bar across.
import numpy as np

from lognmf import RobustLogSparseNMF, plots

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
# Repaired pictures against the undamaged originals, of the damaged ones:
repaired = model.inverse_transform(model.embedding_)
before = np.linalg.norm((X - clean)[damaged], axis=1).mean()
after = np.linalg.norm((repaired - clean)[damaged], axis=1).mean()
print(f"mean distance to the undamaged picture: {before:.1f} as given, {after:.1f} repaired")

# %%
# From top to bottom: as given, the sum of parts, the outlier part.
plots.reconstructions(X, repaired, (32, 32), outliers=model.outliers(), chosen=sorted(damaged)[:6])
