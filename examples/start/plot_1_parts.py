"""
Faces into parts
================

A face is a sum of parts: eyes, a nose, a mouth, perhaps glasses. Nonnegative matrix factorisation can only
add, never subtract. With sparse parts it often finds such pieces from the pictures alone.

The faces here are drawn, so that the true parts are known.
"""

# %%
# Draw 600 faces. Each is made of ten parts; a part is there or not, and darker or lighter.
import numpy as np
from scipy.optimize import linear_sum_assignment

from lognmf import LogSparseNMF, metrics, plots

rng = np.random.default_rng(0)
y, x = np.mgrid[-1:1:40j, -1:1:40j]


def line(distance, width=0.06):
    """A soft line where ``distance`` is zero."""
    return np.exp(-((distance / width) ** 2))


face = np.hypot(x / 0.75, y / 0.95)
eyes = np.minimum(np.hypot(x - 0.3, y + 0.2), np.hypot(x + 0.3, y + 0.2))
drawn = {
    "outline": line(face - 1),
    "hair": (face < 1) * (y < -0.62) * 0.8,
    "brows": line(y + 0.42 - 0.1 * np.cos(6 * x)) * (abs(abs(x) - 0.3) < 0.17),
    "eyes": line(eyes, 0.08),
    "glasses": line(eyes - 0.2, 0.04) + line(y + 0.2, 0.03) * (abs(x) < 0.1),
    "nose": line(x) * (abs(y - 0.05) < 0.15),
    "moustache": (abs(y - 0.32) < 0.06) * (abs(x) < 0.28) * 0.9,
    "smile": line(y - 0.55 + 0.8 * x**2) * (abs(x) < 0.32),
    "beard": (face < 1) * (y > 0.72) * 0.7,
    "ears": line(np.hypot((abs(x) - 0.82) / 0.5, y) - 0.18),
}
parts = np.array([part.ravel() for part in drawn.values()])
there = rng.random((600, len(parts))) < 0.6
there[:, 0] = True
X = (there * rng.uniform(0.5, 1, there.shape)) @ parts + 0.02 * rng.random((600, 1600))
plots.samples(X, image_shape=(40, 40), per_class=10, cmap="gray_r", title="100 of the 600 faces")

# %%
# Ten components. `LogSparseNMF` makes the parts as sparse as 5 % more error allows, and runs until it
# converges.
model = LogSparseNMF(10, random_state=0).fit(X)

found = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
true = parts / np.linalg.norm(parts, axis=1, keepdims=True)
cosines = true @ found.T
agreement = cosines[linear_sum_assignment(-cosines)]  # each true part has a found part to itself
print(f"stopped after {model.n_iter_} iterations: {model.stop_reason_}")
print(f"zeros in the parts: {np.mean(model.components_ == 0):.0%}")
print(f"Hoyer's sparseness: {metrics.hoyer_sparseness(model.components_):.2f} (1: a single pixel)")
for name, cosine in zip(drawn, agreement, strict=True):
    print(f"{name:10s} found with cosine {cosine:.3f}")

# %%
# A cosine of 1 means that the part was found exactly. Here they are:
plots.parts(model, (40, 40), cmap="gray_r")

# %%
# Each face is the sum of its parts. Its *code*, a row of ``embedding_``, says how much of each: here as the
# darkness of the part.
import matplotlib.pyplot as plt

shown = [0, 67, 200, 333]
codes = model.embedding_[shown]
figure, places = plt.subplots(len(shown), 11, figsize=(11, 4.3), layout="constrained")
for i, row in enumerate(places):
    pictures = [X[shown[i]], *(codes[i][:, None] * model.components_)]
    for axes, image in zip(row, pictures, strict=True):
        axes.imshow(image.reshape(40, 40), cmap="gray_r", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_color("0.85")
    for side in ("left", "right", "top", "bottom"):
        row[0].spines[side].set(linewidth=2.5, color="tab:blue")
    row[1].set_ylabel("=", fontsize=16, rotation=0, labelpad=10, va="center")
places[0, 0].set_title("face", color="tab:blue")
places[0, 5].set_title("its parts")
plt.show()

# sphinx_gallery_thumbnail_number = 3
