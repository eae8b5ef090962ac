"""The pages say what is: links lead somewhere, examples run, tables and defaults are the code's."""

import ast
import contextlib
import doctest
import inspect
import io
import re
import tomllib
import warnings
from pathlib import Path

import pytest
from sklearn.utils import get_tags

from lognmf import MODELS

ROOT = Path(__file__).parents[1]
METHODS = ROOT / "docs" / "methods"
PAGES = sorted(path for path in METHODS.glob("*.md") if path.name != "README.md")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]

FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
WORDS = {True: "yes", False: "no"}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_extras_that_are_to_be_installed_exist(path):
    for names in re.findall(r"lognmf\[([\w,]+)\]", path.read_text(encoding="utf-8")):
        assert set(names.split(",")) <= EXTRAS.keys()


def name_of(path):
    return str(path.relative_to(ROOT))


def rows():
    """The table of the methods: paper's name -> (page, the other cells)."""
    found = {}
    for line in (METHODS / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if first := re.fullmatch(r"\[(.+)\]\((.+\.md)\)", cells[0]):
            found[first[1]] = METHODS / first[2], cells[1:]
    return found


def defaults_on(page):
    """``name=value`` of the parameter list of a page, as written before each colon."""
    text = page.read_text(encoding="utf-8").split("## Parameters that matter")[1].split("\n## ")[0]
    heads = [line.split("`: ")[0] + "`" for line in text.splitlines() if line.startswith("- `")]
    return dict(re.findall(r"`(\w+)=([^`]+)`", " ".join(heads)))


class Fenced(doctest.DocTestParser):
    """Reads examples between Markdown fences; to doctest a closing fence would be output."""

    def parse(self, string, name="<string>"):
        return super().parse(re.sub(r"^```.*$", "", string, flags=re.MULTILINE), name)


def test_every_model_has_its_row_in_the_papers_order():
    assert list(rows()) == list(MODELS)
    assert sorted(page for page, _ in rows().values()) == PAGES


@pytest.mark.parametrize("name", MODELS)
def test_row_and_page_of_a_model(name):
    cls, (page, cells) = MODELS[name], rows()[name]
    assert cells[0] == f"`{cls.__name__}`"
    takes = get_tags(cls()).input_tags
    assert cells[-3:] == [WORDS[takes.sparse], WORDS[not takes.positive_only], WORDS[takes.allow_nan]]
    assert page.read_text(encoding="utf-8").startswith(f"# {name}: `{cls.__name__}`\n")


@pytest.mark.parametrize("name", MODELS)
def test_defaults_are_the_codes(name):
    signature = inspect.signature(MODELS[name]).parameters
    told = defaults_on(rows()[name][0])
    assert len(told) >= 4
    assert {key: ast.literal_eval(value) for key, value in told.items()} == {
        key: signature[key].default for key in told
    }


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_relative_links_lead_somewhere(path):
    text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", path.read_text(encoding="utf-8")))
    targets = [target.split("#")[0] for target in LINK.findall(text) if "://" not in target]
    missing = [target for target in targets if target and not (path.parent / target).exists()]
    if not (ROOT / ".git").exists():  # the sdist has no pictures and no measured rows
        missing = [target for target in missing if Path(target).suffix not in {".png", ".parquet"}]
    assert not missing


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_examples_of_a_method(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = doctest.testfile(str(path), module_relative=False, parser=Fenced(), encoding="utf-8")
    assert result.attempted >= 5
    assert result.failed == 0


def test_example_of_the_readme():
    blocks = [
        code
        for language, code in FENCED.findall((ROOT / "README.md").read_text(encoding="utf-8"))
        if language == "python"
    ]
    assert blocks
    names = {"__name__": "__main__"}  # a later block goes on where an earlier one ended
    said = io.StringIO()
    for code in blocks:
        with warnings.catch_warnings(), contextlib.redirect_stdout(said):
            warnings.simplefilter("error")
            exec(compile(code, "README.md", "exec"), names)
    shown = said.getvalue().splitlines()
    page = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(shown) == 3
    assert set(shown[:2]) <= set(page)  # the third line counts samples that are close to the limit


def test_the_tree_in_contributing_is_the_tree_on_disk():
    tree = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("src/lognmf/\n")[1].split("```")[0]
    lines = [line.split() for line in tree.strip().splitlines()]
    named = {word.removesuffix("/") for line in lines for word in line if word.endswith((".py", "/"))}
    source = ROOT / "src" / "lognmf"
    files = {path.name for path in source.glob("*.py") if not path.name.startswith("__")}
    assert named == files | {path.parent.name for path in source.glob("*/__init__.py")}
    assert len(lines) <= 15


def test_every_promise_of_security_names_a_test_that_is_there():
    promises = (
        (ROOT / "SECURITY.md").read_text(encoding="utf-8").split("## What we promise")[1].split("\n- ")[1:]
    )
    tests = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    for promise in promises:
        named = re.findall(r"`(test_\w+)`", promise)
        assert named, promise
        assert [name for name in named if f"def {name}(" not in tests] == []
