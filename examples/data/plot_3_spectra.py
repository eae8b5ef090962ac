"""
Spectra unmixed
===============

Pixels of a hyperspectral picture are mixtures: part soil, part tree, part water. A factorisation finds
the spectra of the pure materials, and how much of each is in a pixel.
"""

# %%
# A scene of 48 × 48 pixels and 120 wavelengths, made of three smooth spectra.
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from scipy.optimize import linear_sum_assignment

from lognmf import LogSparseNMF, PlainNMF

rng = np.random.default_rng(0)
wavelength = np.linspace(0.4, 0.9, 120)


def bump(centre, width):
    """A peak of a spectrum."""
    return np.exp(-(((wavelength - centre) / width) ** 2))


spectra = np.array(
    [
        0.15 + 0.5 * (wavelength - 0.4),  # soil: rises steadily
        0.05
        + 0.10 * bump(0.55, 0.04)
        + 0.5 / (1 + np.exp(-(wavelength - 0.71) / 0.015)),  # tree: the red edge
        0.02 + 0.14 * bump(0.42, 0.15),  # water: dark, a little blue
    ]
)
regions = np.array([gaussian_filter(rng.standard_normal((48, 48)), 7) for _ in range(3)])
shares = np.exp(6 * regions / regions.std())
shares = (shares / shares.sum(axis=0)).reshape(3, -1)
X = shares.T @ spectra
X = np.maximum(X + 0.003 * rng.standard_normal(X.shape), 0)
print(f"pixels with more than 99 % of one material: {np.mean(shares.max(axis=0) > 0.99):.0%}")

# %%
# Without such pixels the spectra could not be told from their mixtures. `PlainNMF` finds mixtures even so:
# many factorisations fit equally well. Spectra have no zeros, so sparse *parts* would be wrong.
# `LogSparseNMF` sees that in a first fit and makes the *codes* sparse instead: few materials per pixel. The
# angle to the true spectra, in radians, is what people in this field report; 0 is perfect.
models = {
    "PlainNMF": PlainNMF(3, solver="cd", init="nndsvda", max_iter=2000, random_state=0).fit(X),
    "LogSparseNMF": LogSparseNMF(3, random_state=0).fit(X),
}
true = spectra / np.linalg.norm(spectra, axis=1, keepdims=True)
matched = {}
for name, model in models.items():
    found = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    order = linear_sum_assignment(-true @ found.T)[1]
    angles = np.arccos(np.clip((true * found[order]).sum(axis=1), -1, 1))
    matched[name] = found[order], model.embedding_[:, order]
    print(f"{name:13s} angles: {np.round(angles, 3)}")
print(f"weights chosen: alpha {models['LogSparseNMF'].alpha_:.2g}, beta {models['LogSparseNMF'].beta_:.2g}")

# %%
# Dashed: true spectra. Below: the maps of the three materials, true and found.
found, codes = matched["LogSparseNMF"]
figure, places = plt.subplots(3, 3, figsize=(9, 8), layout="constrained", height_ratios=(1.1, 1, 1))
for j, material in enumerate(("soil", "tree", "water")):
    places[0, j].plot(wavelength, found[j], linewidth=2.5, label="LogSparseNMF")
    places[0, j].plot(wavelength, true[j], "k--", linewidth=1, label="true")
    places[0, j].plot(wavelength, matched["PlainNMF"][0][j], color="0.6", label="PlainNMF", zorder=0)
    places[0, j].set(title=material, xlabel="wavelength in μm", yticks=[], ylim=(0, None))
    places[1, j].imshow(shares[j].reshape(48, 48), cmap="viridis")
    places[2, j].imshow(codes[:, j].reshape(48, 48), cmap="viridis")
    for axes in places[1:, j]:
        axes.set(xticks=[], yticks=[])
places[0, 0].legend()
places[0, 0].set_ylabel("reflectance, unit norm")
places[1, 0].set_ylabel("true share")
places[2, 0].set_ylabel("found code")
plt.show()
