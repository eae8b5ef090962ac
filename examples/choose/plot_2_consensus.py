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
# *Stability* says how much alike the copies of a part are, and how unlike other parts: 1 is best, near 0 it
# runs into another part. *Support* is the share of the restarts that have a copy. Look at both: a part can
# be sharp but missing from some restarts, or be in nearly all of them and blurred.
for number, (stability, support) in enumerate(zip(consensus.stability, consensus.support, strict=True)):
    print(f"part {number}: stability {stability:.2f}, found by {support:.0%} of the restarts")
best, mine = consensus.restart_errors.min(), consensus.model.reconstruction_err_
print(f"error of the consensus {mine:.2f}, of the best restart {best:.2f}")

# %%
# The consensus parts, most stable first.
figure, places = plt.subplots(2, 4, figsize=(8, 5), layout="constrained")
for number, axes in enumerate(places.flat):
    axes.imshow(consensus.model.components_[number].reshape(8, 8), cmap="gray_r")
    axes.set(xticks=[], yticks=[])
    axes.set_title(
        f"stability {consensus.stability[number]:.2f}\nsupport {consensus.support[number]:.0%}", fontsize=10
    )
plt.show()

# %%
# Read the last parts of this list with care, or try another number of components
# (:ref:`sphx_glr_gallery_choose_plot_1_number_of_components.py`).
