"""The picture of the README: `python docs/images/overview.py` writes overview.png beside this file."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from lognmf import LogSparseNMF, NMFClustering, RobustLogSparseNMF, datasets, normalize


def tiles(axes, pictures, shape, columns, title):
    """Pictures side by side, bright is large."""
    rows = len(pictures) // columns
    pictures = pictures / np.maximum(pictures.max(axis=1, keepdims=True), 1e-12)
    framed = np.ones((rows, columns, shape[0] + 1, shape[1] + 1))
    framed[:, :, :-1, :-1] = pictures[: rows * columns].reshape(rows, columns, *shape)
    whole = framed.transpose(0, 2, 1, 3).reshape(rows * (shape[0] + 1), columns * (shape[1] + 1))
    axes.imshow(whole[:-1, :-1], cmap="gray", interpolation="nearest")
    axes.set_title(title, fontsize=11)
    axes.axis("off")


def main():
    """Draw and save it."""
    mpl.use("Agg")
    digits = datasets.load("digits")
    X, shape = normalize(digits.X), digits.image_shape
    parts = LogSparseNMF(24, random_state=0).fit(X).components_
    clusterer = NMFClustering(10, random_state=0).fit(X)
    groups = [np.flatnonzero(clusterer.labels_ == group)[:6] for group in range(4)]
    damaged, rng = X.copy(), np.random.default_rng(0)
    which = rng.choice(len(X), 40, replace=False)
    damaged[which] = rng.permuted(damaged[which], axis=1)
    robust = RobustLogSparseNMF(20, random_state=0).fit(damaged)
    worst = np.argsort(-robust.outlier_norm_)[:24]
    figure, (one, two, three) = plt.subplots(1, 3, figsize=(11, 2.9), dpi=120, layout="constrained")
    tiles(one, parts, shape, 6, "24 sparse parts of 1797 digits")
    tiles(two, X[np.concatenate(groups)], shape, 6, "four of ten clusters, found without labels")
    tiles(three, damaged[worst], shape, 6, "largest outliers: the shuffled pictures")
    figure.savefig(Path(__file__).with_name("overview.png"))


if __name__ == "__main__":
    main()
