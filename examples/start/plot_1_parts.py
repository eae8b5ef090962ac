"""
Faces into parts
================

"""

from lognmf import LogSparseNMF, plots
from sklearn.datasets import load_digits

model = LogSparseNMF(5).fit(load_digits().data[:100])
plots.parts(model, (8, 8))
