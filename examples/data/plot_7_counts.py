"""
Counts: mutations, and which processes caused them
==================================================

Counts are not measured with the same accuracy: 100 is known to about ±10, 10,000 to about ±100. The
Kullback-Leibler loss is the likelihood of Poisson counts and takes that into account.
"""

# %%
# Tumours collect mutations of 96 types. Each process, such as sunlight or smoking, has its own profile over
# the types; a tumour's counts are a sum of a few of them. Here are 150 simulated tumours and five processes.
# The totals of the tumours differ by a factor of a thousand.
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from lognmf import PlainNMF

rng = np.random.default_rng(0)
profiles = rng.dirichlet(np.full(96, 0.3), 5)
active = rng.random((150, 5)) < 0.4
active[np.arange(150), rng.integers(5, size=150)] = True
exposures = active * rng.lognormal(4, 1.7, (150, 5))
counts = rng.poisson(exposures @ profiles)
print(
    f"totals from {counts.sum(axis=1).min()} to {counts.sum(axis=1).max()}, {np.mean(counts == 0):.0%} zeros"
)


# %%
# The same factorisation with both losses. Profiles are compared by their cosine, in the best matching.
def cosines(model):
    """The cosine of each true profile with its match."""
    found = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    true = profiles / np.linalg.norm(profiles, axis=1, keepdims=True)
    table = true @ found.T
    rows, columns = linear_sum_assignment(-table)
    return table[rows, columns]


models = {
    loss: PlainNMF(5, loss=loss, solver="cd", n_init=5, random_state=0).fit(counts)
    for loss in ("frobenius", "kullback-leibler")
}
for loss, model in models.items():
    print(f"{loss:17s} cosines {np.sort(cosines(model)).round(3)}, iterations {model.n_iter_}")

# %%
# Squared errors follow the few tumours with the most mutations; the likelihood uses all of them. Coordinate
# descent also gives exact zeros: processes that were not active in a tumour.
model = models["kullback-leibler"]
shares = model.embedding_ * model.components_.sum(axis=1)
zeros = np.mean(model.components_ == 0), np.mean(shares == 0)
print(f"exact zeros: {zeros[0]:.0%} of the profiles, {zeros[1]:.0%} of the codes")

fig, axes = plt.subplots(5, 1, figsize=(8, 7), sharex=True, layout="constrained")
found = model.components_ / model.components_.sum(axis=1, keepdims=True)
_, order = linear_sum_assignment(-profiles @ found.T)
for axis, true, part in zip(axes, profiles, found[order], strict=True):
    axis.bar(np.arange(96), true, width=0.9, color="lightgrey", label="true profile")
    axis.plot(np.arange(96), part, ".", color="tab:blue", label="found")
axes[0].legend(loc="upper right")
axes[-1].set_xlabel("mutation type")
plt.show()

# %%
# New tumours get their exposures by ``transform``: the codes are solved to tolerance for the profiles that
# were found.
new = rng.poisson(exposures[:3] @ profiles)
print(np.round(model.transform(new) * model.components_.sum(axis=1))[:, order].astype(int))
print(exposures[:3].round().astype(int))
