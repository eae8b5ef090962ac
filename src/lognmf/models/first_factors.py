"""First factors that a user gave, or that a fit leaves to the next one, with its weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lognmf.models.on_workers import Remote
from lognmf.models.remote_samples import given_codes
from lognmf.models.validation import check_factor, check_same_shape
from lognmf.models.weights import AUTO


def _goes_on(model: Any, given: Mapping[str, Any]) -> bool:
    """Whether a fit begins where the last one ended."""
    return model.warm_start and hasattr(model, "components_") and all(F is None for F in given.values())


def question(model: Any) -> list[Any]:
    """All that decides which weights a fit chooses, but for the data."""
    return [getattr(model, name) for name in (*sorted(model._auto), "extra_error") if hasattr(model, name)]


def last_weights(model: Any, given: Mapping[str, Any]) -> dict[str, list[float]]:
    """Weights that are chosen from the data, where a fit goes on with those of the last one."""
    now = question(model)
    if not _goes_on(model, given) or getattr(model, "_asked", now) != now:
        return {}
    return {name: [getattr(model, f"{name}_")] for name in model._auto if getattr(model, name) == AUTO}


def given_factors(model: Any, data: Any, given: Mapping[str, Any], unit: float) -> list[Any]:
    """First factors that need not be drawn, as a batch of one: given ones, or those of the last fit.

    Codes of samples that are on workers are futures of those of every block.
    """
    shapes = model._shapes(*data.shape)
    first: list[Any] = [given.get(name) for name in shapes]
    if _goes_on(model, given):
        check_same_shape(model, *data.shape)
        first = list(model._last())
    for place, (name, shape) in enumerate(shapes.items()):
        if first[place] is None:
            continue
        scale = unit if (name == "U0") == model._basis_has_unit else 1.0
        if isinstance(data, Remote) and name == "V0":
            first[place] = given_codes(data, first[place], shape[1], scale)
            continue
        signed = model._signed and name == "U0"
        F = check_factor(name, first[place], shape, data.pattern, signed=signed)[:, None, :]
        F /= scale
        first[place] = F
    return first
