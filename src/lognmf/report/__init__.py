"""Results as one HTML page: sortable tables, figures and facts in a single file that needs no network."""

from lognmf.report.methods import spelled_out
from lognmf.report.page import Cell, Figure, Highlight, Method, Page, Section, Table
from lognmf.report.render import write_page

__all__ = ["Cell", "Figure", "Highlight", "Method", "Page", "Section", "Table", "spelled_out", "write_page"]
