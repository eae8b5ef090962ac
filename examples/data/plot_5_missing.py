"""
Missing entries filled
======================

Two thirds of the pixels of a photograph are lost. Small patches of a picture resemble one another, so a
factorisation of the patches, fitted to the known pixels alone, predicts the rest.
"""

# %%
# A photograph that comes with scikit-learn, in grey, and a mask of what is known. ``NaN`` marks a missing
# entry.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import reconstruct_from_patches_2d

from lognmf import LogSparseNMF

picture = load_sample_image("china.jpg")[60:260:2, 180:440:2].mean(axis=2) / 255
rng = np.random.default_rng(0)
known = rng.random(picture.shape) < 1 / 3
holes = np.where(known, picture, np.nan)

# %%
# All overlapping patches of 10 × 10 pixels are the samples. Where entries are missing, the fit uses
# multiplicative updates; two hundred are enough here.
size = (10, 10)
patches = np.lib.stride_tricks.sliding_window_view(holes, size).reshape(-1, 100)
model = LogSparseNMF(24, alpha=0.1, beta=0, init="scaled", max_iter=200, tol=0, random_state=0).fit(patches)
print(f"{len(patches)} patches, {np.isnan(patches).mean():.0%} of the entries missing")

# %%
# Every pixel is in up to 100 patches; their predictions are averaged.
predicted = model.inverse_transform(model.embedding_).reshape(-1, *size)
filled = np.where(known, picture, reconstruct_from_patches_2d(predicted, picture.shape))
mean = np.where(known, picture, picture[known].mean())


def error(guess):
    """Root mean square error of the missing pixels, on a scale from 0 (black) to 1 (white)."""
    return np.sqrt(np.mean((guess - picture)[~known] ** 2))


print(
    f"missing pixels, error: {error(mean):.3f} filled by the mean, {error(filled):.3f} by the factorisation"
)

# %%
shown = {"known pixels": holes, "filled": filled, "original": picture}
figure, places = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for axes, (title, image) in zip(places, shown.items(), strict=True):
    axes.set_facecolor("tab:orange")
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[], title=title)
plt.show()
