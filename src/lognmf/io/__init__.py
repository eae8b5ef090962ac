"""Readers: a data matrix with the names of its samples and features, from a file, a folder or a data set."""

from lognmf.io.arrays import load_npy
from lognmf.io.load import ENDINGS, completed, is_name, load_data, read
from lognmf.io.request import DataWarning, Fitted, Request, few, hint, hint_at_unknown, parsing

__all__ = [
    "ENDINGS",
    "DataWarning",
    "Fitted",
    "Request",
    "completed",
    "few",
    "hint",
    "hint_at_unknown",
    "is_name",
    "load_data",
    "load_npy",
    "parsing",
    "read",
]
