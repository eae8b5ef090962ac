"""How the site is built: `make docs`. Nothing is fetched from the network.

Sphinx, numpydoc, the PyData theme and sphinx-gallery, since readers of scikit-learn, SciPy and pandas know
their way around such sites. Pages are Markdown (MyST), so that they can be read on a code host too.
"""

from __future__ import annotations

import re
import sys
import warnings
from dataclasses import fields, is_dataclass
from inspect import getsource
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

import lognmf

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for gallery_pictures

OUTSIDE = {name: HERE.parent / f"{name.upper()}.md" for name in ("contributing", "security", "changelog")}
"""Pages of the site whose text stands at the top of the repository."""

NAMES = {name for name in lognmf.__all__ if not isinstance(getattr(lognmf, name), ModuleType)}
COMMANDS = {"cluster", "compare"}  # on the command line; the functions have parentheses
METHOD_OF = {cls: name for name, cls in lognmf.MODELS.items()}

project = "lognmf"
author = "The lognmf developers"
copyright = author  # noqa: A001
version = release = lognmf.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "_templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]
highlight_language = "none"  # a block without a language is a formula or a command

# Markdown: links to headings as on code hosts.
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 3

# Docstrings. A name in single backticks is a reference, and must lead to one of our pages.
default_role = "py:obj"
nitpicky = True
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say the types in words
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
ELSEWHERE = "sklearn|numpy|scipy|matplotlib|torch|dask|distributed|pandas|polars|anndata"
nitpick_ignore_regex = [
    ("py:.*", rf"({ELSEWHERE})(\.\w+)+"),  # names of other packages: only their form is known
    ("py:.*", "ConvergenceWarning|ParameterGrid|X|y|fit_params|Drawing"),  # of scikit-learn and matplotlib
]

# Gallery.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"[\\/]plot_",
    "subsection_order": [f"../examples/{name}" for name in ("start", "choose", "data", "scale")],
    "within_subsection_order": "FileNameSortKey",
    "image_scrapers": ("gallery_pictures.returned_figures", "matplotlib"),
    "capture_repr": ("_repr_html_",),
    "reset_modules": (),
    "doc_module": ("lognmf",),
    "reference_url": {"lognmf": None},
    "backreferences_dir": "api/examples_of",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "write_computation_times": False,  # its page fetches scripts from the network
}
# An example that warns is an example to mend.
warnings.filterwarnings("error", category=UserWarning)

# Look.
html_theme = "pydata_sphinx_theme"
html_title = "lognmf documentation"
smartquotes = False  # it would turn the quotes of code words and the primes of formulas
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "start")}  # no section to navigate
html_theme_options = {
    "logo": {"text": "lognmf"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def find_short_name(app: Any, env: Any, node: Any, content: nodes.Node) -> nodes.Node | None:
    """A reference to ``knn_graph`` or ``fit``, as docstrings write it, from wherever it stands."""
    if node.get("refdomain") != "py":
        return None
    objects = env.domains["py"].objects
    for owner in ("lognmf", "lognmf.LogSparseNMF", "lognmf.NMFClustering", "lognmf.datasets"):
        if (name := f"{owner}.{node['reftarget']}") in objects:
            page = app.builder.get_relative_uri(node["refdoc"], objects[name].docname)
            return nodes.reference("", "", content, internal=True, refuri=f"{page}#{objects[name].node_id}")
    return None


def links_of_the_site(app: Any, page: str, source: list[str]) -> None:
    """Links out of docs/, which work on a code host: to the site's copy of a page, or mere words."""
    text, folder = source[0], (HERE / page).parent
    if page in OUTSIDE:
        text, folder = OUTSIDE[page].read_text(encoding="utf-8"), OUTSIDE[page].parent
    copies = {path: HERE / f"{name}.md" for name, path in OUTSIDE.items()}

    def lead(link: re.Match[str]) -> str:
        words, target, anchor = link.groups(default="")
        path = (folder / target).resolve()
        if "://" in target or not path.exists():
            return link[0]
        path = copies.get(path, path)
        inside = path.is_file() and path.is_relative_to(HERE)
        return f"[{words}](/{path.relative_to(HERE)}{anchor})" if inside else words

    source[0] = re.sub(r"\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)", lead, text)


def _linked(word: nodes.Node) -> bool:
    """Whether a node stands in a link or in a title."""
    while (word := word.parent) is not None:
        if isinstance(word, nodes.title | nodes.reference | pending_xref):
            return True
    return False


def link_names(app: Any, doctree: nodes.document) -> None:
    """Public names in the code words of a page, such as ``fit_grid`` or ``LogSparseNMF(10)``: to the API."""
    if not str(doctree["source"]).endswith(".md"):
        return
    for word in list(doctree.findall(nodes.literal)):
        name = word.astext().split("(")[0].removeprefix("lognmf.")
        if name in NAMES and word.astext() not in COMMANDS and not _linked(word):
            target = {"refdomain": "py", "reftype": "obj", "reftarget": f"lognmf.{name}", "refexplicit": True}
            link = pending_xref("", word.deepcopy(), refdoc=app.env.docname, refwarn=True, **target)
            word.replace_self(link)


def link_pages(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Pages that a docstring names, and the page of a method, as links."""
    lines[:] = [re.sub(r"docs/([\w/-]+)\.md", r":doc:`/\1`", line) for line in lines]
    if what == "class" and (method := METHOD_OF.get(thing)):
        page = f":doc:`{method} </methods/{method.lower()}>`"
        first = next(i for i, line in enumerate(lines) if line)
        end = lines.index("", first)  # after the summary
        lines[end:end] = ["", f"The page of {page} says when to use it and what goes wrong.", ""]


def list_fields(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Fields of a plain dataclass, which are explained by the comments behind them: as its parameters."""
    if (
        what != "class"
        or not is_dataclass(thing)
        or re.search("Parameters\n|Attributes\n", thing.__doc__ or "")
    ):
        return
    source = getsource(thing)
    for field in fields(thing):
        found = re.search(rf"^    {field.name}: ([^=#\n]+?)(?: = [^#\n]*?)?(?:  # (.+))?$", source, re.M)
        kind, meaning = found.groups() if found else (field.type, None)
        lines += ["", f":param {field.name}: {meaning or ''}", f":type {field.name}: {kind}"]


def hide_private(app: Any, what: str, name: str, thing: Any, options: Any, args: Any, result: Any) -> Any:
    """Signatures of results without the fields that only the library fills."""
    return re.sub(r",? _\w+(=[^,)]*)?", "", args or ""), result


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("missing-reference", find_short_name)
    app.connect("source-read", links_of_the_site)
    app.connect("doctree-read", link_names)
    app.connect("autodoc-process-docstring", link_pages, priority=900)  # after numpydoc
    app.connect("autodoc-process-docstring", list_fields, priority=950)
    app.connect("autodoc-process-signature", hide_private, priority=900)
