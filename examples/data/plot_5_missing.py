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
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import reconstruct_from_patches_2d

from lognmf import LogSparseNMF

picture = load_sample_image("china.jpg")[60:260:2, 180:440:2].mean(axis=2) / 255
rng = np.random.default_rng(0)
known = rng.random(picture.shape) < 1 / 3
holes = np.where(known, picture, np.nan)

# %%
# All overlapping patches of 10 × 10 pixels are the samples. Where entries are missing, the fit uses
# multiplicative updates; here it stops after two hundred, from a random start at the scale of the data.
size = (10, 10)
patches = np.lib.stride_tricks.sliding_window_view(holes, size).reshape(-1, 100)
model = LogSparseNMF(24, alpha=0.1, beta=0, init="scaled", max_iter=200, tol=0, random_state=0).fit(patches)
print(f"{len(patches)} patches, {np.isnan(patches).mean():.0%} of the entries missing")

# %%
# Every pixel is in up to 100 patches; their predictions are averaged. For comparison: the mean of all known
# pixels, and a weighted mean of the known pixels nearby, which does well where the picture is smooth.
predicted = model.inverse_transform(model.embedding_).reshape(-1, *size)
filled = np.where(known, picture, reconstruct_from_patches_2d(predicted, picture.shape))
nearby = gaussian_filter(np.where(known, picture, 0), 1) / gaussian_filter(known.astype(float), 1)
guesses = {"mean": np.full_like(picture, picture[known].mean()), "nearby pixels": nearby, "patches": filled}


def error(guess):
    """Root mean square error of the missing pixels, on a scale from 0 (black) to 1 (white)."""
    return np.sqrt(np.mean((guess - picture)[~known] ** 2))


for name, guess in guesses.items():
    print(f"filled by {name:13s} error {error(guess):.3f}")

# %%
# Missing pixels are orange.
shown = {"known pixels": holes, "filled": filled, "original": picture}
figure, places = plt.subplots(1, 3, figsize=(11, 3.1), layout="constrained")
for axes, (title, image) in zip(places, shown.items(), strict=True):
    axes.set_facecolor("tab:orange")
    axes.imshow(image, cmap="gray", vmin=0, vmax=1)
    axes.set(xticks=[], yticks=[], title=title)
plt.show()
