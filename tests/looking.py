"""What a reader with a browser can or cannot see of a page: contrast, letters, overflow, keys."""

import base64
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from lognmf.plots.style import GRID

SVG = "{http://www.w3.org/2000/svg}"
PAPER = {"light": "#ffffff", "dark": "#14171c"}
INVERTED = 0.92
HUES_TURNED = np.array([[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]])
"""The filter of style.css for drawings on dark paper: invert(0.92) hue-rotate(180deg)."""
SHADE = 0.3
"""Marks as transparent as this are shades behind others, which carry what is meant."""

AXE = Path(__file__).parents[1] / ".axe" / "node_modules" / "axe-core" / "axe.min.js"
"""Put there by ``make .axe/package.json``; it has a licence of its own and is not part of the package."""

POOR_TEXT = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const light = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const paper = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *:not(script)")) {
    const words = [...element.childNodes].filter((n) => n.nodeType === 3 && n.textContent.trim());
    if (!words.length || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [low, high] = [luminance(parse(style.color)), luminance(paper(element))].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5) || size < 10) poor.push([words[0].textContent, ratio, size]);
  }
  return poor;
}"""

UNTOLD_OVERFLOW = """() => {
  const untold = [];
  if (document.documentElement.scrollWidth > innerWidth) untold.push("the page");
  for (const element of document.querySelectorAll("body *")) {
    if (element.scrollWidth <= element.clientWidth + 1 || !element.clientWidth) continue;
    const overflow = getComputedStyle(element).overflowX;
    if (overflow === "visible" || element.classList.contains("unseen")) continue;
    const frame = element.closest(".frame");
    const arrow = frame && getComputedStyle(frame, "::after");
    const told = arrow && arrow.content === '"→"' && arrow.display !== "none" && element.tabIndex === 0;
    if (!told) untold.push(element.outerHTML.slice(0, 80));
  }
  return untold;
}"""

UNSEEN_WINNERS = """() => {
  const unseen = [];
  for (const best of document.querySelectorAll("table[data-best=row] tbody td b")) {
    const edge = best.closest(".scroll").getBoundingClientRect().right;
    const shown = [best, best.closest("tr").querySelector(".winner")].filter(Boolean);
    if (!shown.some((e) => e.getBoundingClientRect().right <= edge)) unseen.push(best.textContent);
  }
  return unseen;
}"""
"""Best numbers of rows that are neither in sight nor named where the row begins."""


NUMBERED = """() => {
  let count = 0;
  for (const e of document.querySelectorAll('a, button, summary, [tabindex="0"]'))
    if (e.checkVisibility()) e.dataset.order = count++;
  return count;
}"""
"""Numbers all that Tab should reach in the order of the page; returns how many there are."""

FOCUSED = """() => {
  const e = document.activeElement, style = getComputedStyle(e);
  return [style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2, e.dataset.order];
}"""
"""Whether one sees where the keyboard is, and the number of that place."""


def drawings(tab):
    """The SVGs of a page: what they show, the SVG, its scale in pixels, and whether dark pages invert it."""
    found = []
    for image in tab.locator("img[src^='data:image/svg']:visible").all():
        root = ElementTree.fromstring(base64.b64decode(image.get_attribute("src").split(",")[1]))
        width = float(root.get("viewBox").split()[2])
        inverted = image.get_attribute("class") == "drawing"
        found.append((image.get_attribute("alt"), root, image.bounding_box()["width"] / width, inverted))
    return found


def poor_marks(root, theme):
    """Colours of a drawing that cannot be told from its paper: below 3:1 for marks, below 4.5:1 for words."""

    def walk(element, words, fill):
        name = element.get("id") or ""
        if name.startswith(("QuadMesh", "FillBetween")) or element.tag == f"{SVG}defs":
            return  # a scale of colours, the shade of a spread, or something that is only used elsewhere
        words = words or name.startswith("text_")
        style = dict(part.split(": ", 1) for part in (element.get("style") or "").split("; ") if ": " in part)
        fill, opacity = style.get("fill", fill), float(style.get("opacity", 1))
        if words and element.tag == f"{SVG}use":
            yield fill, 1, 4.5
        elif not words and opacity > SHADE:
            yield from ((style[key], opacity, 3) for key in ("fill", "stroke") if key in style)
        for child in element:
            yield from walk(child, words, fill)

    found = {(c.rstrip(";"), *rest) for c, *rest in walk(root, False, "#000000") if c.startswith("#")}
    ratios = {
        (colour, round(contrast(_seen(colour, theme, opacity), _rgb(PAPER[theme])), 2), least)
        for colour, opacity, least in found
        if colour not in ("#ffffff", GRID)
    }
    return sorted(one for one in ratios if one[1] < one[2])


def _rgb(colour):
    """Red, green and blue of #rrggbb, from 0 to 1."""
    return np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])


def _seen(colour, theme, opacity):
    """A colour of a drawing as the page shows it, with the paper shining through."""
    seen = _rgb(colour)
    if theme == "dark":
        seen = (HUES_TURNED @ (INVERTED + (1 - 2 * INVERTED) * seen)).clip(0, 1)
    return opacity * seen + (1 - opacity) * _rgb(PAPER[theme])


def contrast(one, other):
    """Contrast ratio of two colours as WCAG 2 defines it, from 1 to 21."""
    light = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (one, other)]
    low, high = sorted(float(channels @ [0.2126, 0.7152, 0.0722]) for channels in light)
    return (high + 0.05) / (low + 0.05)


def small_letters(root, pixels):
    """Sizes of letters of a drawing below 10 pixels; superscripts belong to letters that are larger."""
    sizes = set()
    for text in root.iter(f"{SVG}g"):
        if (text.get("id") or "").startswith("text_"):
            for part in text.iter(f"{SVG}g"):
                if scale := re.search(r"scale\(([\d.]+)", part.get("transform") or ""):
                    sizes.add(100 * float(scale[1]) * pixels)
    return sorted(size for size in sizes if size < 10 and not math.isclose(size, 10, rel_tol=1e-3))
