"""Pages and tables in Markdown, for documents that are kept with the code."""

from __future__ import annotations

from collections.abc import Iterator

from lognmf.report import Cell, Page, Table

__all__ = ["document", "markdown"]


def document(page: Page) -> str:
    """A page in Markdown, without its figures.

    Parameters
    ----------
    page : Page
        Any.

    Returns
    -------
    str
    """
    return "\n\n".join(_paragraphs(page)) + "\n"


def _paragraphs(page: Page) -> Iterator[str]:
    yield f"# {page.title}"
    yield page.subtitle
    if page.highlights:
        yield "\n".join(f"- **{highlight.value}** {highlight.label}" for highlight in page.highlights)
    for section in page.sections:
        tables = [item for item in section.items if isinstance(item, Table)]
        if section.text or tables:
            yield f"## {section.title}"
            yield from section.text
            yield from map(markdown, tables)
    if page.facts:
        yield "## How it came about"
        yield "\n".join(f"- {name}: {fact}" for name, fact in page.facts.items())


def markdown(table: Table) -> str:
    """A table in Markdown, with its title and caption; the paper's numbers stand in parentheses.

    Parameters
    ----------
    table : Table
        Any.

    Returns
    -------
    str
    """
    forms = table.form if isinstance(table.form, tuple) else (table.form,) * len(table.columns)
    lines = [
        _row((table.corner, *table.columns)),
        "|" + "---|" * (1 + len(table.columns)),
        *(
            _row((name, *(_text(cell, form) for cell, form in zip(cells, forms, strict=True))))
            for name, cells in table.rows
        ),
    ]
    return "\n\n".join((f"### {table.title}", table.caption, "\n".join(lines)))


def _row(entries: tuple[str, ...]) -> str:
    return "| " + " | ".join(entry.replace("|", "\\|") for entry in entries) + " |"


def _text(cell: Cell, form: str) -> str:
    if cell.value is None:
        return "–"
    if isinstance(cell.value, str):
        return cell.value
    spread = "" if cell.spread is None else f" ± {cell.spread:{form}}"
    paper = "" if cell.paper is None else f" ({cell.paper:{form}})"
    return f"{cell.value:{form}}{spread}{paper}"
