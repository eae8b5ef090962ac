"""
How many components?
====================

With more components the error always falls, so the error of the fit cannot tell how many there are. The
error of entries that were *held out* can: a component that is really there helps to predict them, one that
follows noise does not.
"""

# %%
# Data with a known answer: 400 samples made of 7 overlapping bumps, with noise.
import numpy as np
from sklearn.datasets import load_digits

from lognmf import NMFClustering, choose_components, normalize, plots

rng = np.random.default_rng(0)
position = np.linspace(0, 1, 80)
bumps = np.exp(-(((position - np.linspace(0.1, 0.9, 7)[:, None]) / 0.08) ** 2))
X = rng.gamma(0.7, size=(400, 7)) @ bumps
X = np.maximum(X + 0.15 * X.std() * rng.standard_normal(X.shape), 0)

choice = choose_components(X, range(2, 15), random_state=0)
print(choice.best, "-", choice.reason)

# %%
# The blue line is the error of held-out entries, as a share of the variance: it has its minimum at the true
# number, while the error of fitted entries (dashed) goes on falling. *Stability* says how well fits with
# different entries held out agree on the parts.
choice.plot()

# %%
# The number of clusters is another question: one cluster may need several parts. ``NMFClustering("auto")``
# weighs the neighbour graph, the distances and the stability of clusterings. There are ten digits.
digits = normalize(load_digits().data)
clusterer = NMFClustering("auto", random_state=0).fit(digits)
print(clusterer.n_clusters_, "-", clusterer.number_.reason)

# %%
# Treat it as a guess: ``number_.others`` names numbers that are almost as good.
plots.components(clusterer.number_.rows, clusterer.n_clusters_, "agreement")

# sphinx_gallery_thumbnail_number = 1
