"""
Coming from scikit-learn
========================

The estimators here have scikit-learn's methods, so most code runs after a change of the import. This page
shows the same fit with both, what the parameters are called, and what is new.

================================  ==============================================================
``sklearn.decomposition.NMF``     lognmf
================================  ==============================================================
``NMF(k)``                        ``PlainNMF(k, solver="cd", init="nndsvda")``
``W = model.fit_transform(X)``    the same; also kept as ``model.embedding_``
``H = model.components_``         the same
``l1_ratio=1``                    ``LogSparseNMF(k, penalty="l1", alpha=…, beta=…,``
                                  ``unit_components=False, scale=1.0)``
``alpha_H``                       ``alpha = 2 * n_samples * alpha_H``
``alpha_W``                       ``beta = 2 * n_features * alpha_W``
``beta_loss="kullback-leibler"``  ``loss="kullback-leibler"``
================================  ==============================================================

scikit-learn halves the error and multiplies its penalties by the numbers of samples and features; here a
weight multiplies its penalty and nothing else. Hence the factors. In scikit-learn ``alpha_H`` is
``alpha_W`` unless given; here ``alpha`` and ``beta`` are set separately.
"""

# %%
# The same objective from the same start ends in the same place.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import NMF

from lognmf import LogSparseNMF, normalize

X = normalize(load_digits().data)
n, p = X.shape
k, alpha, beta = 5, 0.2, 0.2
rng = np.random.default_rng(0)
V0, U0 = rng.random((n, k)) / 4, rng.random((p, k)) / 4

weights = {"alpha_H": alpha / (2 * n), "alpha_W": beta / (2 * p), "l1_ratio": 1}
theirs = NMF(k, init="custom", max_iter=2000, tol=1e-6, **weights)
W = theirs.fit_transform(X, W=V0.copy(), H=U0.T.copy())
bare = {"unit_components": False, "scale": 1.0}  # the bare objective, as scikit-learn has it
ours = LogSparseNMF(k, penalty="l1", alpha=alpha, beta=beta, tol=1e-8, **bare)
V = ours.fit_transform(X, V0=V0, U0=U0)


def objective(V, components):
    """What both minimise, on the scale of lognmf."""
    return np.sum((X - V @ components) ** 2) + alpha * components.sum() + beta * V.sum()


print(f"scikit-learn: {objective(W, theirs.components_):.5f}")
print(f"lognmf:       {objective(V, ours.components_):.5f}")

# %%
# With more components there are many local minima, and the two may end in different ones.
#
# By default `LogSparseNMF` chooses the weights itself: as sparse as 5 % more error allows.
k = 16
plain = NMF(k, init="nndsvda", max_iter=2000, random_state=0).fit(X)
sparse = LogSparseNMF(k, random_state=0).fit(X)
models = {"NMF of scikit-learn": plain, "LogSparseNMF": sparse}
for name, model in models.items():
    zeros = np.mean(model.components_ == 0)
    print(f"{name:20s} error {model.reconstruction_err_:.2f}, zeros in the parts {zeros:.0%}")

# %%
# Sixteen parts each. Those on the right use fewer pixels.
figure = plt.figure(figsize=(9, 4.8), layout="constrained")
for side, (name, model) in zip(figure.subfigures(1, 2, wspace=0.05), models.items(), strict=True):
    side.suptitle(f"{name}: {np.mean(model.components_ == 0):.0%} zeros")
    for axes, part in zip(side.subplots(4, 4).flat, model.components_, strict=True):
        axes.imshow(part.reshape(8, 8), cmap="gray_r")
        axes.set(xticks=[], yticks=[])
plt.show()
