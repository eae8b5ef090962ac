"""The data sets of the paper, from the folder that LOGNMF_DATA names; samples of unit norm."""

import os

from benchopt import BaseDataset

from lognmf import datasets, normalize


class Dataset(BaseDataset):
    """One of the paper's eight data sets."""

    name = "Paper"
    parameters = {"data": ["coil20", "orl", "semeion"]}  # also yale, jaffe, pendigits, ar, eyaleb

    def get_data(self):
        """Load it."""
        if "LOGNMF_DATA" not in os.environ:
            raise RuntimeError("Set LOGNMF_DATA to the folder that holds the paper's data sets.")
        return {"X": normalize(datasets.load(self.data).X)}
