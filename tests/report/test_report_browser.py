"""A page as a reader meets it, in a real browser; skipped where there is none."""

from dataclasses import replace

import pytest
from test_report_page import EVIL, drawing, evil_page, table

from lognmf.report import Cell, Figure, Highlight, Page, Section, Table, write_page


@pytest.fixture
def open_page(browser, tmp_path):
    """Open a page from disk, with all that a reader could be told of by the browser."""
    contexts = []

    def open_page(page, **options):
        path = write_page(page, tmp_path / "index.html")
        context = browser.new_context(**options)
        contexts.append(context)
        tab = context.new_page()
        tab.complaints, tab.requests = [], []
        tab.on("console", lambda message: tab.complaints.append(message.text))
        tab.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tab.on("dialog", lambda dialog: (tab.complaints.append(dialog.message), dialog.dismiss()))
        tab.on("request", lambda request: tab.requests.append(request.url))
        tab.goto(path.as_uri())
        return tab

    yield open_page
    for context in contexts:
        context.close()


def make_page():
    rows = (
        ("b 10", (Cell(5.0, 0.1, 4.0), Cell(1.0), Cell("x"))),
        ("a", (Cell(-7.5, note="a note on a"), Cell(3.0), Cell("z"))),
        ("b 9", (Cell(None), Cell(2.0), Cell("y"))),
        ("c", (Cell(40.0, paper=60.0), Cell(4.0), Cell("w"))),
    )
    wide = tuple(f"column number {j}" for j in range(30))
    return Page(
        "Title",
        "Subtitle",
        (
            Section("Tables", ("Text.",), (
                Table("One", "Caption.", ("up", "down", "word"), rows, "name", better=(1, -1, 0)),
                Table("Wide", "", wide, (("r", tuple(Cell(float(j), 0.1, 1.0) for j in range(30))),)),
            )),
            Section("Figures", (), (Figure("L", "c", drawing()), Figure("P", "", drawing(photo=True)))),
        ),
        {"Command": "`lognmf`"},
        (Highlight("1", "one"),),
    )  # fmt: skip


def order(tab):
    return tab.locator("table").first.locator("tbody th > span:first-child").all_inner_texts()


def sorts(tab):
    return [head.get_attribute("aria-sort") for head in tab.locator("table").first.locator("thead th").all()]


def colour(tab, selector, what="backgroundColor"):
    return tab.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{what}")


def inverted(tab):
    """Whether the drawings of a page are inverted, in its order."""
    filters = "[...document.images].map(image => getComputedStyle(image).filter)"
    return [name.startswith("invert") for name in tab.evaluate(filters)]


def test_it_renders_without_a_complaint_and_asks_for_nothing(open_page):
    tab = open_page(make_page())
    assert tab.title() == "Title"
    assert tab.complaints == []
    # From disk, and from inside itself: nothing else.
    assert {url.partition(":")[0] for url in tab.requests} <= {"file", "data"}
    for image in tab.locator("img").all():
        assert image.evaluate("image => image.complete && image.naturalWidth > 0")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_click_sorts_and_sorts_back(open_page):
    tab = open_page(make_page())
    start = ["b 10", "a", "b 9", "c"]
    assert (order(tab), sorts(tab)) == (start, ["none"] * 4)
    up = tab.locator("thead button", has_text="up").first
    up.click()
    assert (order(tab), sorts(tab)) == (["c", "b 10", "a", "b 9"], ["none", "descending", "none", "none"])
    up.click()
    assert (order(tab), sorts(tab)[1]) == (["a", "b 10", "c", "b 9"], "ascending")  # unknown stays last
    up.click()
    assert (order(tab), sorts(tab)) == (start, ["none"] * 4)
    tab.locator("thead button", has_text="down").first.click()
    assert (order(tab)[0], sorts(tab)[2]) == ("b 10", "ascending")  # lower is better
    tab.locator("thead button", has_text="word").first.click()
    assert (order(tab)[0], sorts(tab)) == ("c", ["none", "none", "none", "ascending"])
    tab.locator("thead button", has_text="name").first.click()
    assert order(tab) == ["a", "b 9", "b 10", "c"]
    assert tab.complaints == []


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_keys_sort_too(open_page, key):
    tab = open_page(make_page())
    tab.locator("thead button", has_text="up").first.focus()
    tab.keyboard.press(key)
    assert order(tab)[0] == "c"


def test_notes_show_on_hover_and_on_focus(open_page):
    tab = open_page(make_page())
    tip, cell = tab.locator("#tip"), tab.locator("td.noted")
    assert tip.is_hidden()
    cell.hover()
    assert tip.inner_text() == "a, up\na note on a"
    tab.locator("h1").hover()
    assert tip.is_hidden()
    cell.focus()
    assert tip.is_visible()
    tab.keyboard.press("Escape")
    assert tip.is_hidden()


def test_it_follows_the_system_into_the_dark_and_the_reader_out_of_it(open_page):
    bright = colour(open_page(make_page(), color_scheme="light"), "body")
    tab = open_page(make_page(), color_scheme="dark")
    dark = colour(tab, "body")
    assert (bright, dark) == ("rgb(255, 255, 255)", "rgb(20, 23, 28)")
    assert any(inverted(tab))
    assert "Light" in tab.locator("#theme").inner_text()
    tab.locator("#theme").click()
    assert colour(tab, "body") == bright
    assert not any(inverted(tab))
    tab.reload()
    assert colour(tab, "body") == bright
    assert not any(inverted(tab))
    tab.locator("#theme").click()
    assert colour(tab, "body") == dark
    assert tab.complaints == []


def test_a_wide_table_scrolls_under_its_first_column(open_page):
    tab = open_page(make_page(), viewport={"width": 420, "height": 600})
    box = tab.locator(".table .scroll").nth(1)
    assert box.evaluate("box => box.scrollWidth > box.clientWidth")
    before = box.locator("tbody th").bounding_box()["x"]
    box.evaluate("box => { box.scrollLeft = 500; }")
    assert box.locator("tbody th").bounding_box()["x"] == before
    assert box.locator("td").first.bounding_box()["x"] < 0
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_prints_light_with_its_notes_and_without_its_buttons(open_page):
    tab = open_page(make_page(), color_scheme="dark")
    tab.emulate_media(media="print", color_scheme="dark")
    assert colour(tab, "body") == "rgb(255, 255, 255)"
    assert not any(inverted(tab))
    assert tab.locator("#theme").is_hidden()
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details").get_attribute("open") is not None
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("details").get_attribute("open") is None
    assert tab.pdf().startswith(b"%PDF")


def test_the_contents_follow_the_reader(open_page):
    section = Section("Part", ("A paragraph.",) * 20, (table([1.0]),))
    sections = tuple(replace(section, title=f"Part {i}") for i in range(40))
    tab = open_page(Page("Long", "", sections), viewport={"width": 1400, "height": 600})
    assert tab.locator("nav a[aria-current]").inner_text() == "Part 0"
    tab.locator("#part-30").evaluate("part => part.scrollIntoView({behavior: 'instant'})")
    current = tab.locator("nav a[aria-current]", has_text="Part 30")
    current.wait_for()
    place = current.bounding_box()
    assert 0 <= place["y"] <= 600 - place["height"]
    assert abs(tab.locator("#part-30").bounding_box()["y"]) < 50  # the page stays where it is


def test_evil_texts_stay_texts(open_page):
    tab = open_page(evil_page(EVIL))
    assert tab.locator("h1").inner_text() == " ".join(EVIL.split())
    assert tab.complaints == []


def test_without_a_script_everything_can_be_read(open_page):
    tab = open_page(make_page(), java_script_enabled=False)
    assert tab.locator("tbody").first.is_visible()
    assert tab.locator("#theme").is_hidden()
    assert tab.locator("thead th").nth(1).inner_text() == "up"
