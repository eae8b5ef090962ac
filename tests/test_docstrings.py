"""Public docstrings are complete, and say the same of the same parameter everywhere."""

import inspect
import re
import types

import pytest

import lognmf
from lognmf import MODELS

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
ENTRY = re.compile(r"^(\w[\w, ]*) : (.*)\n((?:^ +.*\n|^\n)*)", re.MULTILINE)
CHECKS = re.compile(r"\braise |\bcheck_\w+\(")
PRIVATE_WORDS = re.compile(
    r"Most iterations|a line a second|in the mean|\bgauge\b|\bcrumbs?\b|honest", re.IGNORECASE
)

DIFFERENT = {
    "beta": {"LS-NMF": "takes missing entries"},
    "components_": {"CNMF": "the basis is XᵀB", "RMNMF": "of any sign", "Semi-NMF": "of any sign"},
    "embedding_": {"CNMF": "with components_", "RMNMF": "with components_", "Semi-NMF": "with components_"},
    "init": {
        "RLS-NMF": "warns of the random start",
        "NMF": "cannot be given a graph",
        "WNMF": "cannot be given a graph",
        "CNMF": "starts B",
        "ONMF": "starts U from means",
        "RMNMF": "starts U from features",
        "Semi-NMF": "starts V alone",
    },
    "lam": {"GNMF": "names the original program's weight"},
    "loss": {"LS-NMF": "takes missing entries with every loss"},
    "max_iter": {"LS-NMF": "may be None", "RLS-NMF": "may be None"},
    "objective_": {
        "RLS-NMF": "at the best S",
        "CNMF": "no mask",
        "ONMF": "no mask",
        "RMNMF": "no mask",
        "Semi-NMF": "no mask",
    },
    "reconstruction_err_": {
        "RLS-NMF": "no mask",
        "CNMF": "no mask",
        "ONMF": "no mask",
        "RMNMF": "no mask",
        "Semi-NMF": "no mask",
    },
    "tol": {"RMNMF": "judges the constraints"},
    "warm_start": {"RMNMF": "keeps no multipliers"},
}
"""Parameters and attributes that a model describes in its own words, and why."""


def public():
    """Every public class and function by its name."""
    for name in lognmf.__all__:
        value = getattr(lognmf, name)
        if isinstance(value, types.ModuleType):
            names = [n for n in value.__all__ if callable(getattr(value, n))]
            yield from ((f"{name}.{n}", getattr(value, n)) for n in names)
        elif callable(value):
            yield name, value


PUBLIC = dict(public())


def sections(thing):
    """The sections of a docstring by their titles."""
    _, *parts = SECTION.split(inspect.getdoc(thing) + "\n")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def entries(text):
    """(type, description) of every name in a section of parameters or attributes."""
    found = {}
    for names, kind, description in ENTRY.findall(text):
        kind = re.sub(r", default=.*", "", kind)
        found |= dict.fromkeys(names.split(", "), (kind, " ".join(description.split())))
    return found


def required(name, thing):
    """The sections that a docstring must have."""
    if inspect.isclass(thing):
        return {"Parameters", "See Also", "Examples"} | (
            {"Attributes"} if thing in MODELS.values() else set()
        )
    needed = {"Parameters", "Returns", "Examples"}
    return needed | {"See Also"} | ({"Raises"} if CHECKS.search(inspect.getsource(thing)) else set())


@pytest.mark.parametrize("name", PUBLIC)
def test_sections(name):
    thing = PUBLIC[name]
    assert required(name, thing) - set(sections(thing)) == set()
    assert not PRIVATE_WORDS.search(inspect.getdoc(thing))


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_those_of_the_signature(name):
    text = sections(PUBLIC[name])["Parameters"]
    heads = re.findall(r"^(?=\w|\*)([\w, *]+?)(?: :.*)?$", text, re.MULTILINE)
    documented = [n.strip(" *") for head in heads for n in head.split(", ")]
    assert documented == list(inspect.signature(PUBLIC[name]).parameters)


@pytest.mark.parametrize("method", ["fit", "fit_transform", "transform", "inverse_transform"])
@pytest.mark.parametrize("cls", MODELS.values())
def test_methods(cls, method):
    needed = {"Parameters", "Returns"} | ({"Raises"} if method == "fit" else set())
    assert needed <= set(sections(getattr(cls, method)))


@pytest.mark.parametrize("section", ["Parameters", "Attributes"])
def test_models_describe_alike_what_they_share(section):
    texts = {name: entries(sections(cls)[section]) for name, cls in MODELS.items()}
    for word in sorted({word for found in texts.values() for word in found}):
        same = {
            found[word]
            for name, found in texts.items()
            if word in found and name not in DIFFERENT.get(word, ())
        }
        assert len(same) <= 1, (word, same)


@pytest.mark.parametrize("name", MODELS)
def test_exceptions_are_needed(name):
    """An exception for words that are not different hides the next difference."""
    texts = {
        n: {**entries(sections(cls)["Parameters"]), **entries(sections(cls)["Attributes"])}
        for n, cls in MODELS.items()
    }
    for word, exceptions in DIFFERENT.items():
        if name in exceptions:
            common = {found[word] for n, found in texts.items() if word in found and n not in exceptions}
            assert texts[name][word] not in common, word


@pytest.mark.parametrize("name", MODELS)
def test_defaults_in_docstrings_are_those_of_the_code(name):
    text = sections(MODELS[name])["Parameters"]
    written = dict(re.findall(r"^(\w+) : .*default=(.*)$", text, re.MULTILINE))
    code = {n: p.default for n, p in inspect.signature(MODELS[name]).parameters.items()}
    assert {n: eval(value) for n, value in written.items()} == code


def test_every_name_of_the_stub_is_walked():
    assert {
        "LogSparseNMF",
        "fit_grid",
        "metrics.purity",
        "plots.parts",
        "noise.remove",
        "datasets.load",
    } <= set(PUBLIC)
    assert len(PUBLIC) > 45
