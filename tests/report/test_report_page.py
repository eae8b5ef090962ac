"""Pages: one file, nothing fetched, every text escaped, tables that say what they were given."""

import base64
import io
import math
import os
import re
import stat
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure as Drawing

from lognmf.environment import machine
from lognmf.report import Cell, Figure, Highlight, Method, Page, Section, Table, write_page
from lognmf.report.render import render

EVIL = "<script>alert('x')</script> & \"quotes\" <img src=x onerror=alert(1)>"
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Tree(HTMLParser):
    """A strict reading of a page: every tag closed in order; texts and attributes by tag."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.found, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])
        if tag not in VOID:
            self.open.append(self.found[-1])

    def handle_endtag(self, tag):
        assert self.open[-1][0] == tag, (tag, self.open[-1])
        self.open.pop()

    def handle_data(self, data):
        self.text += data
        for element in self.open:
            element[2] += data

    def all(self, tag, kind=None):
        return [
            (attrs, text)
            for name, attrs, text in self.found
            if name == tag and (kind is None or kind in (attrs.get("class") or "").split())
        ]


def table(cells, **more):
    """A table of one row."""
    cells = tuple(cell if isinstance(cell, Cell) else Cell(cell) for cell in cells)
    return Table("T", "", tuple(f"c{j}" for j in range(len(cells))), (("r", cells),), **more)


def page_of(*items, **more):
    return Page("Title", "Subtitle", (Section("Part", (), items),), **more)


def cells_of(*items):
    return Tree(render(page_of(*items))).all("td")


def decoded(attrs):
    """The picture of an image."""
    return base64.b64decode(attrs["src"].split(",")[1])


def drawing(photo=False):
    figure = Drawing(figsize=(2, 1))
    axes = figure.subplots()
    if photo:
        axes.imshow(np.eye(3))
    else:
        axes.plot([1, 2], label=EVIL)
    return figure


# The document --------------------------------------------------------------------------


def test_a_page_is_one_well_formed_document():
    page = Page(
        "Title",
        "Made by `lognmf`",
        (
            Section(
                "First", ("A.", "- b", "- c `d`", "E."), (table([1, 2]), Figure("Lines", "Cap.", drawing()))
            ),
            Section("First", (), (Figure("Photo", "", drawing(photo=True)),)),
        ),
        {"Command": "`lognmf compare x`"},
        (Highlight("87 %", "of cells"),),
    )
    tree = Tree(render(page))
    assert [text for _, text in tree.all("h1")] == ["Title"]
    assert [text for _, text in tree.all("h2")] == ["Contents", "First", "First", "How this was made"]
    assert [text for _, text in tree.all("code")] == ["lognmf", "d", "lognmf compare x"]
    assert [text for _, text in tree.all("ul")] == ["bc d"]
    assert [text for _, text in tree.all("dd")] == ["87 %", "lognmf compare x"]
    links = [attrs["href"] for attrs, _ in tree.all("a")]
    names = [attrs["id"] for _, attrs, _ in tree.found if "id" in attrs]
    assert len(set(names)) == len(names)
    assert {link.removeprefix("#") for link in links} <= set(names)
    assert links[1:] == ["#first", "#t", "#lines", "#first-2", "#photo", "#facts"]


def test_nothing_is_fetched_and_nothing_foreign_can_run():
    text = render(page_of(table([1]), Figure("L", "", drawing()), Figure("P", "", drawing(photo=True))))
    tree = Tree(text)
    assert all(attrs["src"].startswith("data:image/") for attrs, _ in tree.all("img"))
    assert [attrs for attrs, _ in tree.all("script")] == [{}]
    assert not tree.all("link")
    assert not any(name.startswith("on") or name == "style" for _, attrs, _ in tree.found for name in attrs)
    style, script = tree.all("style")[0][1], tree.all("script")[0][1]
    assert not re.search(r"https?:|@import|url\(", style + script)
    (policy,) = (a["content"] for a, _ in tree.all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_the_same_page_gives_the_same_bytes():
    def make():
        return render(
            page_of(table([1.5]), Figure("L", "c", drawing()), Figure("P", "", drawing(photo=True)))
        )

    assert make() == make()


def test_drawings_are_vectors_and_only_those_without_images_are_inverted():
    tree = Tree(render(page_of(Figure("L", "c", drawing()), Figure("P", "", drawing(photo=True)))))
    lines, photo = (attrs for attrs, _ in tree.all("img"))
    assert (lines["class"], photo["class"]) == ("drawing", "photo")
    assert decoded(lines).startswith(b"<?xml")
    assert len(re.findall(rb"<image", decoded(photo))) == 1
    assert (lines["width"], lines["height"]) == ("192", "96")
    assert (lines["alt"], photo["alt"]) == ("L. c", "P")


def test_images_of_a_drawing_keep_their_pixels(rng):
    image = pytest.importorskip("PIL.Image")
    grey = rng.random((5, 7))
    figure = Drawing(figsize=(2, 1))
    figure.subplots().imshow(grey, cmap="gray", vmin=0, vmax=1, interpolation="none")
    attrs, _ = Tree(render(page_of(Figure("P", "", figure)))).all("img")[0]
    inside = re.search(rb"data:image/png;base64,([^\"]+)", decoded(attrs))[1]
    with image.open(io.BytesIO(base64.b64decode(inside))) as picture:
        assert picture.mode == "L"
        np.testing.assert_allclose(np.asarray(picture), 255 * grey, atol=1)


def test_a_heavy_drawing_becomes_pixels(rng):
    figure = Drawing(figsize=(2, 1))
    figure.subplots().scatter(*rng.random((2, 20_000)))
    (image, _) = Tree(render(page_of(Figure("S", "", figure)))).all("img")[0]
    assert image["class"] == "photo"


# Escaping ------------------------------------------------------------------------------


def evil_page(text):
    cells = (Cell(text, note=text), Cell(1.0, 0.5, 2.0, text))
    content = Table(text, text, (text, text + "2"), ((text, cells),), corner=text)
    section = Section(text, (text, f"- {text}", f"`{text}`"), (content, Figure(text, text, drawing())))
    return Page(text, text, (section, section), {text: text}, (Highlight(text, text),))


def test_every_text_is_escaped():
    tree = Tree(render(evil_page(EVIL)))
    assert len(tree.all("script")) == 1
    assert all("src" in attrs and "onerror" not in attrs for attrs, _ in tree.all("img"))
    assert [text for _, text in tree.all("h1")] == [EVIL]
    assert tree.all("td")[0][0]["data-note"] == EVIL
    assert [text for _, text in tree.all("title")] == [EVIL]


@settings(max_examples=25)
@given(st.text(max_size=30))
def test_any_text_leaves_the_page_whole(text):
    cell = Cell(text, note=text)
    page = Page(text, text, (Section(text, (text,), (table([cell]),)),), {text: text})
    tree = Tree(render(page))
    assert [tag for tag, *_ in tree.found].count("td") == 1
    assert len(tree.all("script")) == len(tree.all("h1")) == 1


# Cells ---------------------------------------------------------------------------------


def test_a_cell_shows_ours_the_papers_and_the_difference():
    ((attrs, text),) = cells_of(table([Cell(61.25, 1.5, 58.0)], form=".2f"))
    assert " ".join(text.split()) == "61.25 ± 1.50paper 58.00 +3.25"
    assert attrs["data-sort"] == "61.25"
    assert attrs["class"] == "better off"


@pytest.mark.parametrize(
    ("ours", "kind", "sign"),
    [
        (50.0, "near", "±0.0"), (50.04, "near", "±0.0"), (53.0, "near", "+3.0"), (47.0, "near", "−3.0"),
        (53.1, "better off", "+3.1"), (46.9, "worse off", "−3.1"), (59.1, "better far", "+9.1"),
        (40.0, "worse far", "−10.0"),
    ],
)  # fmt: skip
def test_colours_tell_the_difference_and_signs_do_too(ours, kind, sign):
    ((attrs, text),) = cells_of(table([Cell(ours, paper=50.0)]))
    assert attrs["class"] == kind
    assert text.endswith(sign)


def test_where_lower_is_better_a_lower_number_is_better():
    ((attrs, _),) = cells_of(table([Cell(40.0, paper=50.0)], better=(-1,)))
    assert attrs["class"] == "better far"


def test_the_tolerance_is_in_the_legend():
    tree = Tree(render(page_of(table([Cell(1.0, paper=1.0)], tolerance=2), table([1.0]))))
    assert tree.all("ul", "legend")[0][1].startswith("within 2 of the paper")
    assert len(tree.all("ul", "legend")) == 1


def test_what_is_no_number():
    cells = cells_of(table([None, "not run", math.nan, np.inf, np.float32(1.5), Cell(None, paper=3.0)]))
    assert [text for _, text in cells] == ["–", "not run", "nan", "inf", "1.5", "–paper 3.0"]
    assert ["data-sort" in attrs for attrs, _ in cells] == [False] * 4 + [True, False]
    assert float(cells[4][0]["data-sort"]) == 1.5


def bold(*items):
    return [text for _, text in Tree(render(page_of(*items))).all("b")]


def test_the_best_number_of_a_row_is_bold():
    assert bold(table([1.0, 3.0, 2.0, None, "word", math.nan])) == ["3.0"]
    assert bold(table([3.0, 3.04, 2.0])) == ["3.0", "3.0"]  # they read the same
    assert bold(table([2.0, 1.0], better=(-1, -1))) == ["1.0"]
    assert bold(table([2.0, 1.0], best="")) == bold(table([1.0, 1.0])) == []


def test_the_best_number_of_a_column_is_bold():
    rows = (("a", (Cell(1), Cell(5), Cell(7))), ("b", (Cell(2), Cell(4), Cell(8))))
    content = Table("", "", ("up", "down", "none"), rows, form="d", better=(1, -1, 0), best="column")
    assert bold(content) == ["2", "4"]


def test_notes_are_listed_once_with_their_places():
    cells = (Cell(1.0, note="same"), Cell(2.0, note="same"), Cell(3.0, note="other"))
    tree = Tree(render(page_of(table(cells))))
    ((_, listed),) = tree.all("details")
    assert listed == "Notes (2)r, c0; r, c1: samer, c2: other"
    noted = tree.all("td", "noted")
    ids = {attrs["id"]: text for _, attrs, text in tree.found if "id" in attrs}
    assert [ids[attrs["aria-describedby"]] for attrs, _ in noted] == ["same", "same", "other"]
    assert all(attrs["tabindex"] == "0" for attrs, _ in noted)


def test_a_row_of_a_wide_table_names_its_best_column():
    def names(*cells, **more):
        return [text for _, text in Tree(render(page_of(table(cells, **more)))).all("span", "winner")]

    assert names(1.0, 3.0, 2.0, 0.0, 2.9, 3.0) == ["best: c1, c5 (3.0)"]
    assert names(*range(6), better=(-1,) * 6, best_word="least") == ["least: c0 (0.0)"]
    assert names(1.0, 3.0) == names(*range(6), best="column") == names(*[1.0] * 6) == []


def test_columns_of_words_stand_at_the_left():
    content = Table("T", "", ("a", "b"), (("r", (Cell("x"), Cell(1.0))), ("s", (Cell("y"), Cell("z")))))
    heads = Tree(render(page_of(content))).all("th")
    assert [attrs.get("class") for attrs, _ in heads][:3] == [None, "words", None]


def test_methods_are_spelled_out_and_rows_lead_to_them():
    method = Method("LS-NMF", "log-based sparse NMF", "Sparse.", EVIL)
    tree = Tree(render(page_of(table([1.0]), methods=(method,))))
    assert tree.all("dt")[-1][1] == "LS-NMFlog-based sparse NMF"
    assert tree.all("cite")[0][1] == EVIL
    rows = (("LS-NMF", (Cell(1.0),)), ("NMF", (Cell(1.0),)))
    tree = Tree(render(page_of(Table("T", "", ("a",), rows), methods=(method,))))
    assert [attrs["href"] for attrs, text in tree.all("a") if text == "LS-NMF"] == ["#method--ls-nmf"]
    assert not [text for _, text in tree.all("a") if text == "NMF"]


def test_headings_of_a_table_belong_to_rows_and_columns():
    heads = Tree(render(page_of(table([1, 2], better=(1, -1), corner="name")))).all("th")
    assert [attrs["scope"] for attrs, _ in heads] == ["col"] * 3 + ["row"]
    assert [attrs.get("data-first") for attrs, _ in heads] == [None, "descending", "ascending", None]
    assert [text for _, text in heads] == ["name", "c0", "c1", "r"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rows": (("r", (Cell(1),)),)}, "'T' has 2 columns, but its row 'r' has 1 cells"),
        ({"form": (".1f",)}, "form must have one entry for each of the 2 columns"),
        ({"better": (1, 1, 1)}, "better must have one entry for each of the 2 columns"),
        ({"best": "rows"}, "best must be 'row', 'column' or ''; got 'rows'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(change, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Table(**{"title": "T", "caption": "", "columns": ("a", "b"), "rows": ()} | change)


# Files ---------------------------------------------------------------------------------


def test_a_page_is_written_whole(tmp_path):
    path = write_page(page_of(table([1])), tmp_path / "index.html")
    assert path.read_text(encoding="utf-8") == render(page_of(table([1])))
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    write_page(page_of(table([2])), path)
    assert [file.name for file in tmp_path.iterdir()] == ["index.html"]


def test_a_failure_keeps_the_old_page(tmp_path, monkeypatch):
    path = write_page(page_of(table([1])), tmp_path / "index.html")
    before = path.read_bytes()

    def fail(*_):
        raise OSError

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match=r"^$"):
        write_page(page_of(table([2])), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["index.html"]


def test_the_machine_is_one_line():
    assert "\n" not in machine()
    assert re.search(r"\d+ cores?", machine())
