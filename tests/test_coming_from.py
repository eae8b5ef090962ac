"""The code on the pages for people who come from other libraries, and in the FAQ, runs."""

import importlib
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = DOCS / "coming_from"
PEERS = {"scikit-learn": "sklearn", "nimfa": "nimfa", "torchnmf": "torchnmf", "cnmf": "cnmf"}


def blocks(page, language="python"):
    """Code on a page: what each block's first line says it is for, and the block."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [(code.split("\n")[0].removeprefix("# "), code) for code in found]


def execute(page, wanted, strict):
    """Run the wanted blocks one after the other in one namespace; warnings are errors if ``strict``."""
    chosen = [code for owner, code in blocks(page) if owner in wanted]
    assert chosen
    names = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error" if strict else "ignore")
        for code in chosen:
            exec(compile(code, str(page), "exec"), names)


def test_every_block_says_whose_it_is():
    pages = {page.stem: page for page in PAGES.glob("*.md")}
    assert pages.keys() == {*PEERS, "rcppml", "README"}
    for name, page in pages.items():
        assert {owner for owner, _ in blocks(page)} <= {"lognmf", "both", name}


@pytest.mark.parametrize("name", [*PEERS, "rcppml"])
def test_our_code(name):
    if name == "torchnmf":
        pytest.importorskip("torch")
    execute(PAGES / f"{name}.md", {"lognmf"}, strict=True)


@pytest.mark.parametrize("name", PEERS)
def test_their_code_and_ours(name, monkeypatch, tmp_path):
    if name == "nimfa":  # the page has these lines too; here they are undone afterwards
        monkeypatch.setattr(np, "mat", np.asmatrix, raising=False)
        monkeypatch.setattr(np, "Inf", np.inf, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module(PEERS[name])
        except ImportError:
            pytest.skip(f'{name} is not installed: pip install "lognmf[peers]"')
    execute(PAGES / f"{name}.md", {"lognmf", "both", name}, strict=False)


def test_the_r_code():
    if shutil.which("Rscript") is None:
        pytest.skip("there is no Rscript")
    if subprocess.run(["Rscript", "-e", "library(RcppML)"], capture_output=True, check=False).returncode:
        pytest.skip("R has no RcppML")
    code = "\n".join(code for _, code in blocks(PAGES / "rcppml.md", "r"))
    shown = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"\[1\] +(.*)", shown) == ["64  8", "8", "8 300"]


def test_the_faq():
    page = DOCS / "faq.md"
    names = {"__name__": "__main__"}
    assert blocks(page)
    for _, code in blocks(page):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(code, str(page), "exec"), names)
