"""What tests of figures and pages share."""

import io


def png(figure):
    """The figure as the bytes of a PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=60)
    content = file.getvalue()
    assert content.startswith(b"\x89PNG")
    return content


def drawn(figure):
    """The axes that show something."""
    return [axes for axes in figure.axes if axes.axison]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(figure):
    """Names in the legend of the figure."""
    return [text.get_text() for text in figure.legends[0].get_texts()]
