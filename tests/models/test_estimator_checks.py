"""scikit-learn's own checks, for every model."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from lognmf import MODELS

GRAPH = (
    "fit_transform codes a sample together with its neighbours in the training graph; transform sees "
    "each sample alone and cannot know that graph, so for lam > 0 the two differ"
)


def expected_failed_checks(estimator):
    if estimator.lam == 0:
        return {}
    return {"check_transformer_general": GRAPH, "check_transformer_data_not_an_array": GRAPH}


def estimators():
    """Each model with its defaults, and without the graph, where nothing may fail."""
    for cls in MODELS.values():
        yield cls(n_components=3, max_iter=50)
        yield cls(2, lam=0.0, alpha=0.0, beta=0.0, init="scaled", max_iter=1000, tol=1e-6, random_state=0)


@parametrize_with_checks(list(estimators()), expected_failed_checks=expected_failed_checks)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", MODELS.values())
def test_default_construction_and_clone(cls):
    from sklearn.base import clone

    model = cls()
    assert clone(model).get_params() == model.get_params()
