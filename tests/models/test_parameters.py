"""Parameters are fields of a dataclass, or set by a user's own ``__init__``."""

import dataclasses
import inspect
import pickle
import warnings
from typing import get_args, get_type_hints

import numpy as np
import pytest
from sklearn.base import clone

from lognmf import MODELS, PlainNMF, fit_grid, load_model, save_model
from lognmf.core.problem import Problem
from lognmf.core.terms import Frobenius
from lognmf.models.base import Spec, TermsModel
from problems import samples


class Classic(TermsModel):
    """A user's own model, written the classic way."""

    spec = Spec(weights=("ridge",), blocks=True)

    def __init__(
        self,
        n_components=3,
        *,
        ridge=0.0,
        init="scaled",
        n_init=1,
        solver="mu",
        max_iter=20,
        tol=1e-5,
        eval_every=10,
        warm_start=False,
        random_state=None,
        verbose=0,
    ):
        self.n_components = n_components
        self.ridge = ridge
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.eval_every = eval_every
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def _problem(self, data, W, weights):
        return Problem(data, Frobenius())


@pytest.mark.parametrize("cls", MODELS.values())
class TestDataclass:
    def test_fields_are_the_parameters(self, cls):
        signature = list(inspect.signature(cls).parameters)
        assert [field.name for field in dataclasses.fields(cls)] == signature
        assert sorted(cls().get_params()) == sorted(signature)
        assert signature[0] == "n_components"
        with pytest.raises(TypeError, match="positional"):
            cls(3, 0.1)

    def test_choices_are_those_of_the_type(self, cls):
        """A name that a type promises is in the registry, and the other way round."""
        hints = get_type_hints(cls)
        for name, choices in {**cls.spec.choices, "init": cls.spec.starts}.items():
            assert set(get_args(hints[name])) == set(choices)

    def test_fitted_attributes_have_types(self, cls, rng):
        model = cls(2, max_iter=2).fit(samples(rng))
        fitted = {name for name in vars(model) if name.endswith("_")}
        assert fitted <= set(get_type_hints(cls))

    def test_models_compare_by_identity(self, cls):
        model = cls()
        assert model == model
        assert model != cls()
        assert model in {model}
        assert repr(cls(3, random_state=1)) == f"{cls.__name__}(n_components=3, random_state=1)"


def test_a_model_with_its_own_init(rng, tmp_path):
    X = samples(rng)
    model = Classic(2, random_state=0).fit(X)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).objective_ == model.objective_
    again = load_model(save_model(model, tmp_path / "own"), classes=[Classic])
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    result = fit_grid(Classic(2, random_state=0), X, {"ridge": [0.0, 1.0]})
    assert len(result.rows) == 2
    with pytest.raises(ValueError, match="ridge must be a finite number"):
        Classic(ridge=-1.0).fit(X)


def test_a_subclass_of_a_model_adds_parameters(rng):
    @dataclasses.dataclass(eq=False, repr=False)
    class Named(MODELS["NMF"]):
        label: str = dataclasses.field(default="", kw_only=True)

    model = Named(2, label="mine", random_state=0).fit(samples(rng))
    assert clone(model).label == "mine"


class TestSettingsThatDoNothing:
    @pytest.mark.parametrize("name", ["LS-NMF", "RLS-NMF", "GNMF", "RMNMF"])
    def test_a_weight_of_no_graph(self, name, rng):
        model = MODELS[name](2, lam=1.0, graph=None, max_iter=2, tol=0.0)
        with pytest.warns(UserWarning, match="lam=1 has no effect, since graph=None: give a graph, or"):
            model.fit(rng.random((12, 5)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.set_params(lam=0.0).fit(rng.random((12, 5)))

    def test_more_components_than_samples_and_features(self, rng):
        with pytest.warns(UserWarning, match="n_components=6 exceeds the 4 samples and the 5 features of X"):
            PlainNMF(6, max_iter=2).fit(rng.random((4, 5)))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            PlainNMF(5, max_iter=2).fit(rng.random((4, 5)))
