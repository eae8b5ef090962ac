"""The pages of all commands in a real browser: phone and desktop, light and dark."""

from pathlib import Path

import numpy as np
import pytest

from lognmf.cli import main as cli
from lognmf.paper.reproduce import reproduce
from lognmf.paper.spec import PRESETS, Data, Preset
from looking import (
    AXE,
    FOCUSED,
    NUMBERED,
    POOR_TEXT,
    UNSEEN_WINNERS,
    UNTOLD_OVERFLOW,
    drawings,
    poor_marks,
    small_letters,
)

WIDTHS = {"phone": 390, "desktop": 1440}
VIEWS = [(device, theme) for device in WIDTHS for theme in ("light", "dark")]
COMMANDS = {
    "fit": ["fit", "x.npz", "-k", "3", "--image-shape", "8x8", "--tune", "--lam", "1", "--max-iter", "10"],
    "cluster": ["cluster", "words.csv", "-k", "3", "--labels", "kind", "--index", "name"],
    "compare": ["compare", "x.npz", "--seeds", "2", "--max-iter", "20", "--image-shape", "8x8"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def page(request, folder, monkeypatch):
    """The address of a page, written when it is first asked for."""
    name = request.param
    path = folder / name / "index.html"
    if not path.exists():
        monkeypatch.chdir(folder)
        make(name)
    return path.as_uri()


def make(name):
    from sklearn.datasets import load_digits

    X, y = load_digits(n_class=3, return_X_y=True)
    if name == "reproduce":
        tiny = Preset({"alpha": (0.1,), "beta": (0.1,), "gamma": (1.0,), "lam": (0.1, 1.0)}, 4, seeds=(1, 2))
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(PRESETS, "tiny", tiny)
            data = {"Yale": Data("digits", 30)}
            wanted = ["table1", "fig-convergence", "fig-time"]
            reproduce(wanted, name, preset="tiny", data=data, executor="inline", command="lognmf reproduce")
        return
    if name == "cluster":
        names = [f"a long name of a feature {j}" for j in range(20)]
        lines = [",".join(["name", "kind", *names])]
        rows = (X[:60, 20:40] + 1).tolist()
        lines += [",".join([f"sample {i}", f"kind {y[i]}", *map(str, row)]) for i, row in enumerate(rows)]
        Path("words.csv").write_text("\n".join(lines), encoding="utf-8")
    else:
        np.savez("x.npz", X=X[:90], y=y[:90])
    with pytest.raises(SystemExit) as caught:
        cli.main([*COMMANDS[name], "--out", name])
    assert caught.value.code == 0


def look(browser, address, check, views=VIEWS):
    """What a check finds on a page, by width and theme; the browser itself must have no complaint."""
    found = {}
    for device, theme in views:
        view = {"width": WIDTHS[device], "height": 900}
        tab = browser.new_page(viewport=view, color_scheme=theme)
        complaints = []
        tab.on("console", lambda message, told=complaints: told.append(message.text))
        tab.on("pageerror", lambda error, told=complaints: told.append(str(error)))
        tab.goto(address)
        tab.evaluate("() => new Promise(requestAnimationFrame)")
        if seen := [*complaints, *check(tab, theme)]:
            found[device, theme] = seen
        tab.close()
    return found


every_page = pytest.mark.parametrize("page", [*COMMANDS, "reproduce"], indirect=True)


@every_page
def test_all_can_be_seen_and_nothing_is_out_of_sight_unsaid(browser, page):
    def check(tab, theme):
        yield from tab.evaluate(POOR_TEXT)
        yield from tab.evaluate(UNTOLD_OVERFLOW)
        yield from tab.evaluate(UNSEEN_WINNERS)
        shown = drawings(tab)
        assert shown
        for title, root, pixels, inverted in shown:
            yield from ((title, colour) for colour in poor_marks(root, theme if inverted else "light"))
            yield from ((title, size) for size in small_letters(root, pixels))

    assert look(browser, page, check) == {}


@every_page
def test_axe_finds_nothing_serious(browser, page):
    if not AXE.exists():
        pytest.skip("axe-core is not here: make .axe/package.json fetches it with npm")
    source = AXE.read_text(encoding="utf-8")

    def check(tab, theme):
        tab.evaluate(source)
        found = tab.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        for one in found:
            if one["impact"] in ("serious", "critical"):
                yield one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]]

    assert look(browser, page, check, [("phone", "dark"), ("desktop", "light")]) == {}


@every_page
def test_tab_reaches_all_that_acts_and_shows_where_it_is(browser, page):
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    tab.goto(page)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    wanted = min(tab.evaluate(NUMBERED), 60)
    reached = set()
    for _ in range(wanted):
        outline, order = tab.evaluate(FOCUSED)
        assert outline, tab.evaluate("document.activeElement.outerHTML.slice(0, 100)")
        reached.add(order)
        tab.keyboard.press("Tab")
    assert reached == {str(i) for i in range(wanted)}
    tab.close()


def test_a_faded_edge_says_that_a_table_goes_on(browser, folder, monkeypatch):
    monkeypatch.chdir(folder)
    if not (folder / "compare").exists():
        make("compare")
    tab = browser.new_page(viewport={"width": 390, "height": 900})
    tab.goto((folder / "compare" / "index.html").as_uri())
    frame = tab.locator(".table .frame").first
    box = frame.locator(".scroll")
    assert frame.get_attribute("class") == "frame right"
    name = box.locator("tbody th").first
    before = name.bounding_box()["x"]
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    tab.locator(".table .frame.left:not(.right)").first.wait_for()
    assert name.bounding_box()["x"] == before
    tab.close()
