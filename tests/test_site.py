"""The site of `make docs`, as far as it can be judged without building it."""

import ast
import doctest
import importlib
import re
import warnings
from pathlib import Path

import pytest

import lognmf
from test_docs import Fenced

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BUILT = {"_build", "gallery", "generated", "examples_of", "_templates"}
PAGES = sorted(
    path
    for path in [*DOCS.rglob("*.md"), *DOCS.rglob("*.rst")]
    if not set(path.relative_to(DOCS).parts) & BUILT
)
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
MODULES = ["blocks", "datasets", "metrics", "noise", "plots", "report"]
TOCTREE = re.compile(r"^(?:```\{toctree\}|\.\. toctree::)\n(.*?)(?:^```$|\Z)", re.MULTILINE | re.DOTALL)


def text_of(path):
    return path.read_text(encoding="utf-8")


def listed(page):
    """Names of the pages in the toctrees of a page, from docs/ on."""
    lines = [line.strip() for block in TOCTREE.findall(text_of(page)) for line in block.splitlines()]
    folder = page.parent.relative_to(DOCS)
    return {(folder / line).as_posix() for line in lines if line and not line.startswith(":")}


def documented():
    """Full names that the API pages list, by autosummary or by hand."""
    names = set()
    for page in (DOCS / "api").glob("*.rst"):
        module, table = "", False
        for line in text_of(page).splitlines():
            if found := re.match(r"\.\. (?:current)?module:: (\S+)", line):
                module = found[1]
            elif found := re.match(r"\.\. data:: (\S+)", line):
                names.add(f"{module}.{found[1]}")
            if line and not line.startswith(" "):
                table = line == ".. autosummary::"
            elif table and re.fullmatch(r" +[\w.]+", line):
                names.add(f"{module}.{line.strip()}")
    return names


def public_names():
    names = {f"lognmf.{name}" for name in lognmf.__all__} - {f"lognmf.{name}" for name in MODULES}
    for module in MODULES:
        names |= {f"lognmf.{module}.{name}" for name in importlib.import_module(f"lognmf.{module}").__all__}
    # What a module takes over from the package is documented there.
    return names - {"lognmf.blocks.in_blocks", "lognmf.blocks.on_workers"}


def test_every_page_is_in_the_navigation():
    reached, new = set(), {"index"}
    while new:
        reached |= new
        files = [path for name in new for path in DOCS.glob(f"{name}.*") if path in PAGES]
        new = {name for page in files for name in listed(page)} - reached
    names = {path.relative_to(DOCS).with_suffix("").as_posix() for path in PAGES}
    assert names - reached == set()
    assert reached - names == {"gallery/index"}  # which is built


def test_every_public_name_is_in_the_api():
    assert public_names() - documented() == set()


def test_every_name_in_the_api_is_there():
    for full in documented():
        owner, name = full.rsplit(".", 1)
        assert hasattr(importlib.import_module(owner), name), full


def test_the_gallery_is_large_enough():
    assert len(EXAMPLES) >= 15
    assert all(path.name.startswith("plot_") for path in EXAMPLES)  # only those are run


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title_a_story_and_a_picture(path):
    tree = ast.parse(text_of(path))
    title, line, _, *story = (ast.get_docstring(tree) or "").splitlines()
    assert line == "=" * len(title)
    assert len(" ".join(story)) > 80
    assert re.search(r"plt\.show\(\)|^plots\.\w+\(|^\w+\.plot\(\)", text_of(path), re.MULTILINE)
    assert len(re.findall(r"^# %%\n# \w", text_of(path), re.MULTILINE)) >= 2  # prose between the code


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_needs_no_network(path):
    assert not re.search(r"fetch_\w+\(|urlopen|requests|LOGNMF_DATA", text_of(path))
    names = re.findall(r"datasets\.load\(\"(\w+)\"", text_of(path))
    assert set(names) <= {"digits"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_into_the_gallery_lead_to_an_example(path):
    for target in re.findall(r"gallery/(\w+/plot_\w+?)(?=[`>\s])", text_of(path)):
        assert (ROOT / "examples" / f"{target}.py").exists(), target


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=lambda path: path.name)
def test_external_links_are_well_formed(path):
    for link in re.findall(r"https?:[^\s)>`\"']*", text_of(path)):
        assert re.fullmatch(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?(/[\w./%?=&#~+-]*)?[.,;]?", link), link


def test_the_first_page_leads_to_the_questions():
    links = set(re.findall(r"^:link: (\S+)$", text_of(DOCS / "index.md"), re.MULTILINE))
    assert {"scoreboard", "reproduction", "start", "gallery/index", "gpu"} <= links
    assert {f"gallery/{name}" for name in ("start/plot_2_clusters", "choose/plot_3_alpha")} <= links


def test_examples_of_the_start_page():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.testfile(
            str(DOCS / "start.md"), module_relative=False, parser=Fenced(), encoding="utf-8"
        )
    assert result.attempted >= 10
    assert result.failed == 0
