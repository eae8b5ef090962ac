"""
The log penalty against ℓ1
==========================

Both penalties set small entries to zero. ℓ1 takes the same amount from every entry, so the large ones
shrink too. The log penalty, Σ log(1 + m), takes less the larger an entry is. What does that change?
"""

# %%
# Samples made of six known parts. 60 % of the true codes are zero, the others range from near 0 to over
# 100.
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from lognmf import LogSparseNMF

rng = np.random.default_rng(0)
parts = rng.gamma(1.0, size=(6, 100)) * (rng.random((6, 100)) < 0.3)
parts /= np.linalg.norm(parts, axis=1, keepdims=True)
codes = rng.gamma(1.0, 20, size=(400, 6)) * (rng.random((400, 6)) < 0.4)
X = np.maximum(codes @ parts + 1.5 * rng.standard_normal((400, 100)), 0)

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
    print(f"{penalty:4s} beta {model.beta_:4.1f}: {right_zeros(model):.0%} of zeros right, error {error:.0f}")

# %%
# Left: at the same share of zeros the log penalty costs less error. Right: at its best weight for the
# zeros, ℓ1 makes the large codes too small, by an amount that does not depend on their size; with the log
# penalty they lie on the diagonal.
figure, places = plt.subplots(1, 2, figsize=(9.5, 4.4), layout="constrained")
for (penalty, models), style in zip(fits.items(), ("o-", "s--"), strict=True):
    zeros = [np.mean(model.embedding_ == 0) for model in models]
    places[0].plot(zeros, [model.reconstruction_err_ for model in models], style, label=penalty)
    places[1].plot(
        codes.ravel(), found_codes(best[penalty]).ravel(), style[0], markersize=2.5, alpha=0.5, label=penalty
    )
places[0].axvline(np.mean(codes == 0), color="0.5", linestyle=":", label="true share")
places[0].set(
    xlabel="share of zeros in the codes", ylabel="error", title="The price of zeros", ylim=(200, 400)
)
places[1].axline((0, 0), slope=1, color="0.3", linewidth=1)
places[1].set(
    xlabel="true code",
    ylabel="found code",
    title="Large codes under both penalties",
    xlim=(0, 80),
    ylim=(0, 80),
)
for axes in places:
    axes.legend(markerscale=1.5)
plt.show()

# %%
# Where entries are far below 1, log(1 + m) is nearly m, and the two penalties do the same. Parts of unit
# norm with many features are such a case: there ``penalty="log"`` and ``"l1"`` hardly differ.
