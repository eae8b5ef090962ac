"""
Parts despite wild samples
==========================

A few wild samples can spoil the parts of all the others. How many does it take, with and without an outlier
part?
"""

# %%
# Samples made of six known parts, bumps along 90 features. A growing share of them goes wild: a few
# features at random, at four times the usual norm.
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from lognmf import LogSparseNMF, RobustLogSparseNMF

rng = np.random.default_rng(0)
position = np.linspace(0, 1, 90)
parts = np.exp(-(((position - np.linspace(0.1, 0.9, 6)[:, None]) / 0.09) ** 2))
parts /= np.linalg.norm(parts, axis=1, keepdims=True)
clean = rng.gamma(1.0, size=(300, 6)) @ parts + 0.02 * rng.random((300, 90))
wild = 0.01 + (rng.random((300, 90)) < 0.06)
wild *= 4 * np.linalg.norm(clean, axis=1).mean() / np.linalg.norm(wild, axis=1, keepdims=True)
order = rng.permutation(300)


def agreement(model):
    """Mean cosine of the true parts with the found ones, matched one to one; 1 is perfect."""
    found = model.components_ / np.maximum(np.linalg.norm(model.components_, axis=1, keepdims=True), 1e-12)
    cosines = parts @ found.T
    return cosines[linear_sum_assignment(-cosines)].mean()


# %%
# Both fits know the number of parts, and nothing else. Neither has a weight for sparsity, so that they
# differ in the outlier part alone. The library warns that the norms of the samples differ; here they should.
warnings.filterwarnings("ignore", "The norms of the samples differ by much")
shares = [0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2]
scores, at_5_percent = {"LogSparseNMF": [], "RobustLogSparseNMF": []}, {}
for share in shares:
    X = clean.copy()
    bad = order[: round(share * 300)]
    X[bad] = wild[bad]
    for cls in (LogSparseNMF, RobustLogSparseNMF):
        model = cls(6, alpha=0, beta=0, random_state=0).fit(X)
        scores[cls.__name__].append(agreement(model))
        if share == 0.05:
            at_5_percent[cls.__name__] = model
print(f"{'wild samples':19s}", " ".join(f"{share:4.0%}" for share in shares))
for name, values in scores.items():
    print(f"{name:19s}", " ".join(f"{value:.2f}" for value in values))

# %%
# Six wild samples of 300 (2 %) are enough to spoil the plain fit. Right: the six parts found with 5 % wild
# samples, one part per row. Without the outlier part, some of them describe wild samples.
figure = plt.figure(figsize=(10, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2)
axes = left.subplots()
for (name, values), style in zip(scores.items(), ("s--", "o-"), strict=True):
    axes.plot(shares, values, style, label=name)
axes.set(xlabel="share of wild samples", ylabel="cosine with the true parts", ylim=(0, 1.05))
axes.set_xticks([0, 0.05, 0.1, 0.15, 0.2], ["0", "5 %", "10 %", "15 %", "20 %"])
axes.legend(loc="lower left")
for axes, (name, model) in zip(right.subplots(2, 1), at_5_percent.items(), strict=True):
    axes.imshow(model.components_, aspect="auto", cmap="gray_r", interpolation="nearest", vmax=0.6)
    axes.set(xlabel="feature", yticks=range(6), ylabel="part", title=f"{name}, 5 % wild samples")
plt.show()
