"""
What does alpha do?
===================

``alpha`` is the weight of sparsity: the larger, the more entries of the parts are exactly zero, and the
larger the error. The same data with five values.
"""

# %%
# Twelve parts of the digits. ``beta``, the weight of sparse codes, stays 0.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lognmf import LogSparseNMF, normalize, plots

X = normalize(load_digits().data)
values = [0, 0.5, 2, 8, 32]
fits = [LogSparseNMF(12, alpha=alpha, beta=0, random_state=0).fit(X) for alpha in values]
auto = LogSparseNMF(12, random_state=0).fit(X)
models = {f"alpha = {model.alpha:g}": model for model in fits}
models[f"auto ({auto.alpha_:.2g})"] = auto
models = dict(sorted(models.items(), key=lambda one: one[1].alpha_))
zeros = {name: np.mean(model.components_ == 0) for name, model in models.items()}
errors = {name: model.reconstruction_err_ / fits[0].reconstruction_err_ for name, model in models.items()}
for name in models:
    print(f"{name:12s} zeros {zeros[name]:4.0%}, error {errors[name]:.3f} times that of alpha = 0")

# %%
# From top to bottom the parts shrink from larger patches to small pieces of a few pixels.
plots.parts_of_models({name: model.components_ for name, model in models.items()}, (8, 8), cmap="gray_r")

# %%
# By default ``alpha="auto"`` goes up to 5 % more error (``extra_error=0.05``). That fit is marked by a star.
# It lies above the line because "auto" raises the weight in steps, each from the fit before, and so ends in
# a better minimum than a fit that starts with the full weight. The right value of alpha depends on the
# number of samples and on how well they fit, so a number that suits one data set does not suit another: say
# how much error you can afford.
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name in models:
    place = errors[name], zeros[name]
    if models[name] is auto:
        axes.plot(*place, "*", markersize=16, color="tab:orange", label='alpha="auto"')
    else:
        axes.annotate(name, place, (8, -12), textcoords="offset points")
given = [name for name in models if models[name] is not auto]
axes.plot([errors[name] for name in given], [zeros[name] for name in given], marker="o", zorder=0)
axes.set(xlabel="error, relative to alpha = 0", ylabel="share of zeros in the parts")
axes.set_title("More zeros cost error")
axes.yaxis.set_major_formatter("{x:.0%}")
axes.margins(x=0.2, y=0.15)
axes.legend(loc="lower right")
plt.show()
