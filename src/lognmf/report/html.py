"""A page as HTML: one document, its style and script inside, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from itertools import count, groupby

from lognmf.report.page import Figure, Page, Section, Table
from lognmf.report.pictures import picture
from lognmf.report.tables import table

__all__ = ["render"]


def render(page: Page) -> str:
    """The page as an HTML document.

    Parameters
    ----------
    page : Page

    Returns
    -------
    str
        The same page gives the same text.
    """
    style, script = (_resource(name) for name in ("style.css", "script.js"))
    anchors = _Anchors()
    sections = [(anchors.name(section.title), section) for section in page.sections]
    parts = [(anchor, section, _items(section, anchors)) for anchor, section in sections]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="generator" content="lognmf">',
            f"<title>{escape(page.title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#content">To the content</a>',
            _contents(page, parts),
            '<main id="content" tabindex="-1">',
            _masthead(page),
            *(_section(*part) for part in parts),
            _facts(page),
            "</main>",
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


class _Anchors:
    """Names of places in the page: what their titles say, each once."""

    def __init__(self) -> None:
        self._taken = {"content", "facts", "theme"}

    def name(self, title: str) -> str:
        word = "-".join(re.findall(r"[a-z0-9]+", title.lower())) or "part"
        names = (word if i == 1 else f"{word}-{i}" for i in count(1))
        anchor = next(name for name in names if name not in self._taken)
        self._taken.add(anchor)
        return anchor


_Items = Sequence[tuple[str, Table | Figure]]


def _items(section: Section, anchors: _Anchors) -> _Items:
    return [(anchors.name(item.title), item) for item in section.items]


def _masthead(page: Page) -> str:
    boxes = "".join(
        f"<div><dd>{escape(box.value)}</dd><dt>{escape(box.label)}</dt></div>" for box in page.highlights
    )
    return (
        f"<header><h1>{escape(page.title)}</h1>"
        f'<p class="subtitle">{_words(page.subtitle)}</p>'
        '<button id="theme" type="button" hidden></button>'
        + (f'<dl class="highlights">{boxes}</dl>' if boxes else "")
        + "</header>"
    )


def _contents(page: Page, parts: Sequence[tuple[str, Section, _Items]]) -> str:
    def link(anchor: str, title: str) -> str:
        return f'<a href="#{anchor}">{escape(title)}</a>'

    lines = []
    for anchor, section, items in parts:
        inner = "".join(f"<li>{link(name, item.title)}</li>" for name, item in items if item.title)
        lines.append(f"<li>{link(anchor, section.title)}{f'<ol>{inner}</ol>' if inner else ''}</li>")
    if page.facts:
        lines.append(f"<li>{link('facts', _FACTS)}</li>")
    return f'<nav aria-label="Contents"><h2>Contents</h2><ol>{"".join(lines)}</ol></nav>'


def _section(anchor: str, section: Section, items: _Items) -> str:
    body = "\n".join(
        table(item, name) if isinstance(item, Table) else _figure(item, name) for name, item in items
    )
    text = "".join(_paragraphs(section.text))
    return f'<section id="{anchor}"><h2>{escape(section.title)}</h2>{text}\n{body}</section>'


def _paragraphs(text: Sequence[str]) -> Iterator[str]:
    """Paragraphs, and a list for those that start with a dash."""
    for listed, group in groupby(text, key=lambda line: line.startswith("- ")):
        if listed:
            yield f"<ul>{''.join(f'<li>{_words(line[2:])}</li>' for line in group)}</ul>"
        else:
            yield from (f"<p>{_words(line)}</p>" for line in group)


def _words(text: str) -> str:
    """Escaped text; what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _figure(figure: Figure, anchor: str) -> str:
    image = picture(figure.figure)
    alt = escape(f"{figure.title}. {figure.caption}" if figure.caption else figure.title)
    heading = f"<h3>{escape(figure.title)}</h3>" if figure.title else ""
    caption = f"<figcaption>{_words(figure.caption)}</figcaption>" if figure.caption else ""
    return (
        f'<figure id="{anchor}">{heading}<div class="scroll">'
        f'<img class="{image.kind}" src="{image.uri}" alt="{alt}" '
        f'width="{image.width}" height="{image.height}">'
        f"</div>{caption}</figure>"
    )


_FACTS = "How this was made"


def _facts(page: Page) -> str:
    if not page.facts:
        return ""
    lines = "".join(f"<dt>{escape(key)}</dt><dd>{_words(value)}</dd>" for key, value in page.facts.items())
    return f'<section id="facts"><h2>{_FACTS}</h2><dl class="facts">{lines}</dl></section>'


def _resource(name: str) -> str:
    return files("lognmf.report").joinpath(name).read_text(encoding="utf-8").strip()


def _policy(style: str, script: str) -> str:
    """Only this style and this script, and pictures from inside the page: nothing else can load or run."""

    def digest(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    rules = {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": digest(style),
        "script-src": digest(script),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())
