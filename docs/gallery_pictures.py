"""Pictures of the gallery: figures that are the value of a block's last line, as in a notebook."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def returned_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the last line's figure: `lognmf.plots` returns figures that pyplot does not know."""
    figure = block_vars["example_globals"].get("___")
    if not isinstance(figure, Figure) or hasattr(
        figure, "saved_for_gallery"
    ):  # a later block keeps the value
        return ""
    figure.saved_for_gallery = True
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=110)
    return figure_rst([path], gallery_conf["src_dir"], figure.get_suptitle())
