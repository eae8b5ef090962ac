"""
The log penalty against ℓ1
==========================

Both penalties set small entries to zero. ℓ1 takes the same amount from every entry, so the large ones
shrink too. The log penalty, Σ log(1 + m), takes less the larger an entry is. What does that change?
"""

# %%
# Samples made of six known parts. Most of the true codes are zero; the others vary in size.
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from lognmf import LogSparseNMF

rng = np.random.default_rng(0)
parts = rng.gamma(1.0, size=(6, 100)) * (rng.random((6, 100)) < 0.3)
parts /= np.linalg.norm(parts, axis=1, keepdims=True)
codes = rng.gamma(1.0, 20, size=(400, 6)) * (rng.random((400, 6)) < 0.4)
X = np.maximum(codes @ parts + 1.5 * rng.standard_normal((400, 100)), 0)
print(f"{np.mean(codes == 0):.0%} of the codes are zero, the largest is {codes.max():.0f}")

# %%
# Fit with growing ``beta``, the weight of sparse codes. ``scale=1.0`` keeps the units of X, in which codes
# are much larger than 1.
weights = np.geomspace(1, 50, 12)
fits = {
    penalty: [
        LogSparseNMF(6, penalty=penalty, alpha=0, beta=beta, scale=1.0, random_state=0).fit(X)
        for beta in weights
    ]
    for penalty in ("log", "l1")
}


def found_codes(model):
    """The codes, in the order of the true parts."""
    return model.embedding_[:, linear_sum_assignment(-parts @ model.components_.T)[1]]


def right_zeros(model):
    """Share of the codes that are zero where they should be, and only there."""
    return np.mean((found_codes(model) == 0) == (codes == 0))


best = {penalty: max(models, key=right_zeros) for penalty, models in fits.items()}
for penalty, model in best.items():
    error = model.reconstruction_err_
    right = f"{right_zeros(model):.0%} of the codes rightly zero or nonzero"
    print(f"{penalty:4s} beta {model.beta_:4.1f}: {right}, error {error:.0f}")

# %%
# Left: at the same share of zeros the log penalty costs less error. Middle and right: true and found codes
# at each penalty's best weight for the zeros. ℓ1 makes all codes too small, by an amount that does not
# depend on their size; with the log penalty large codes lie on the diagonal.
figure, places = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
for j, (penalty, models) in enumerate(fits.items()):
    zeros = [np.mean(model.embedding_ == 0) for model in models]
    errors = [model.reconstruction_err_ for model in models]
    places[0].plot(zeros, errors, "os"[j] + "-", color=f"C{j}", label=penalty)
    axes = places[1 + j]
    axes.plot(codes.ravel(), found_codes(best[penalty]).ravel(), ".", color=f"C{j}", markersize=4)
    axes.axline((0, 0), slope=1, color="0.3", linewidth=1)
    axes.set(xlabel="true code", ylabel="found code", title=f'penalty="{penalty}"')
    axes.set_aspect("equal")
places[0].axvline(np.mean(codes == 0), color="0.5", linestyle=":", label="true share")
places[0].set(xlabel="share of zeros in the codes", ylabel="error", title="The price of zeros")
places[0].legend()
plt.show()

# %%
# Where entries are far below 1, log(1 + m) is nearly m, and the two penalties do the same. That is so for
# parts of unit norm with many features.
