"""Planted parts and noise, dense or sparse; samples of unit norm."""

import numpy as np
import scipy.sparse as sp
from benchopt import BaseDataset

from lognmf import normalize


class Dataset(BaseDataset):
    """Twenty planted parts: dense with 10 % noise, or sparse counts drawn from them."""

    name = "Simulated"
    parameters = {"kind": ["dense", "sparse"], "n": [2000], "p": [1000]}
    parts = 20

    def get_data(self):
        """Draw them; the seed is fixed."""
        rng = np.random.default_rng(0)
        mean = rng.random((self.n, self.parts)) ** 4 @ rng.random((self.parts, self.p)) ** 4
        if self.kind == "dense":
            return {"X": normalize(mean + 0.1 * rng.random(mean.shape))}
        counts = rng.poisson(mean * 0.02 / mean.mean())  # 2 % of the entries are stored
        return {"X": normalize(sp.csr_array(counts, dtype=np.float64))}
