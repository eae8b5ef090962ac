"""Data sets by name, with their classes, picture shapes, sources and terms; and folders of pictures.

``load(name)`` finds or downloads the files of a named set, ``load_folder(path)`` reads your own pictures.
"""

from lognmf.datasets.loading import load
from lognmf.datasets.pictures import load_folder
from lognmf.datasets.registry import NAMES, PAPER, REGISTRY, Dataset

__all__ = ["NAMES", "PAPER", "REGISTRY", "Dataset", "load", "load_folder"]
