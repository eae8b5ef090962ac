"""scikit-learn's own checks, for every model."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from lognmf import MODELS
from lognmf.core.solvers import SOLVERS

WHOLE = {
    "GNMF": "a graph couples the codes of the training samples",
    "RMNMF": "a graph and VᵀV = I couple the codes of the training samples",
    "ONMF": "the updates steer V towards VᵀV = I, which couples the codes of the training samples",
    "CNMF": "the square-rooted update of V converges too slowly to meet the check's tolerance",
    "Semi-NMF": "the square-rooted update of V converges too slowly to meet the check's tolerance",
    "NMF": "multiplicative updates of V stop before the check's tolerance",
}
"""Why `transform`, which solves for each sample alone and to tolerance, differs from `fit_transform`."""

NAMES = {cls: name for name, cls in MODELS.items()}
CONVERGED = {
    "lam": 0.0,
    "alpha": 0.0,
    "beta": 0.0,
    "gamma": 1.0,
    "init": "scaled",
    "max_iter": 1000,
    "tol": 1e-6,
    "random_state": 0,
}
"""Nothing couples the samples, and the updates converge: nothing may fail."""


def expected_failed_checks(estimator):
    checks = ["check_transformer_general", "check_transformer_data_not_an_array"]
    reason = WHOLE.get(NAMES[type(estimator)])
    return {} if reason is None else dict.fromkeys(checks, reason)


ESTIMATORS = [cls(n_components=3, max_iter=50) for cls in MODELS.values()]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failed_checks)
def test_scikit_learn(estimator, check):
    check(estimator)


def converged():
    """Models of terms without what couples the samples, with the checks of `fit_transform`."""
    for cls in MODELS.values():
        params = cls().get_params()
        options = {key: value for key, value in CONVERGED.items() if key in params}
        for solver in SOLVERS if "solver" in params else ():
            for estimator, check in estimator_checks_generator(cls(2, solver=solver, **options)):
                if "transformer" in (name := check.func.__name__):
                    yield pytest.param(estimator, check, id=f"{cls.__name__}-{solver}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(converged()))
def test_converged_fits(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", MODELS.values())
def test_default_construction_and_clone(cls):
    from sklearn.base import clone

    model = cls()
    assert clone(model).get_params() == model.get_params()
