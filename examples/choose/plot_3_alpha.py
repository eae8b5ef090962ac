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
models = {
    f"alpha = {alpha:g}": LogSparseNMF(12, alpha=alpha, beta=0, random_state=0).fit(X) for alpha in values
}
auto = models["auto"] = LogSparseNMF(12, random_state=0).fit(X)
zeros = {name: np.mean(model.components_ == 0) for name, model in models.items()}
errors = {
    name: model.reconstruction_err_ / models["alpha = 0"].reconstruction_err_
    for name, model in models.items()
}
for name in models:
    print(f"{name:12s} zeros {zeros[name]:4.0%}, error {errors[name]:.3f} of that without sparsity")
print(f'"auto" chose alpha = {auto.alpha_:.3g}')

# %%
# From top to bottom the parts turn from whole strokes into small pieces of a few pixels.
plots.parts_of_models({name: model.components_ for name, model in models.items()}, (8, 8))

# %%
# By default ``alpha="auto"`` goes up to 5 % more error (``extra_error=0.05``). That point is marked. Its
# value depends on the number of samples and on how well they fit, so a number that suits one data set does
# not suit another: say how much error you can afford.
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
names = list(models)[:-1]
axes.plot([errors[name] for name in names], [zeros[name] for name in names], marker="o")
for name in names:
    axes.annotate(name, (errors[name], zeros[name]), (8, -10), textcoords="offset points")
axes.plot(errors["auto"], zeros["auto"], "*", markersize=16, color="tab:orange", label='alpha="auto"')
axes.set(xlabel="error, relative to alpha = 0", ylabel="share of zeros in the parts")
axes.set_title("More zeros cost error")
axes.yaxis.set_major_formatter("{x:.0%}")
axes.margins(x=0.15)
axes.legend(loc="lower right")
plt.show()
