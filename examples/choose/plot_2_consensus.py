"""
Which parts are stable?
=======================

NMF has many local minima, so another start may give other parts. `consensus_components` fits from many
random starts, keeps what they agree on, and says how stable each part is.
"""

# %%
# Eight components of the digits, thirty restarts, fitted as one batch.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from lognmf import consensus_components, normalize

X = normalize(load_digits().data)
consensus = consensus_components(X, 8, n_restarts=30, random_state=0)

# %%
# The *stability* of a part is near 1 if the restarts agree on it, and near 0 if it runs into another one.
# Its *support* is the share of the restarts that have it.
for number, (stability, support) in enumerate(zip(consensus.stability, consensus.support, strict=True)):
    print(f"part {number}: stability {stability:.2f}, found by {support:.0%} of the restarts")
best, mine = consensus.restart_errors.min(), consensus.model.reconstruction_err_
print(f"error of the consensus {mine:.2f}, of the best restart {best:.2f}")

# %%
# The consensus parts, most stable first.
figure, places = plt.subplots(2, 4, figsize=(8, 4.6), layout="constrained")
for number, axes in enumerate(places.flat):
    axes.imshow(consensus.model.components_[number].reshape(8, 8), cmap="gray_r")
    axes.set(xticks=[], yticks=[], title=f"stability {consensus.stability[number]:.2f}")
plt.show()

# %%
# Two of thirty restarts may both be good fits and still differ in the last parts of this list. Read those
# with care, or try another number of components
# (:ref:`sphx_glr_gallery_choose_plot_1_number_of_components.py`).
