"""Checks of arguments: what was given, what is allowed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_integer(name: str, value: Any, minimum: int) -> None:
    """Refuse what is not an integer of at least ``minimum``."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        msg = f"{name} must be an integer >= {minimum}; got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    if value < minimum:
        msg = f"{name} must be an integer >= {minimum}; got {value}."
        raise ValueError(msg)


def check_seed(name: str, value: Any) -> None:
    """Refuse what is not an integer that NumPy takes as a seed."""
    check_integer(name, value, 0)
    if value >= 2**32:
        msg = f"{name} must be an integer from 0 to 2**32 - 1; got {value}."
        raise ValueError(msg)


def check_random_state(value: Any) -> None:
    """Refuse what is neither a seed nor a source of random numbers."""
    source = value is None or value is np.random or isinstance(value, np.random.RandomState)
    if not source and not (isinstance(value, Integral) and 0 <= int(value) < 2**32):
        msg = f"random_state must be a seed from 0 to 2**32 - 1, a RandomState or None; got {value!r}."
        raise ValueError(msg)


def check_nonnegative(name: str, value: Any) -> None:
    """Refuse what is not a finite number >= 0."""
    if not isinstance(value, Real) or isinstance(value, bool):
        msg = f"{name} must be a finite number >= 0; got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)
    try:
        number = float(value)
    except OverflowError:  # an integer beyond any float
        number = math.inf
    if not (math.isfinite(number) and number >= 0):
        msg = f"{name} must be a finite number >= 0; got {value}."
        raise ValueError(msg)


def check_at_least(name: str, value: Any, minimum: float) -> None:
    """Refuse what is not a finite number >= ``minimum``."""
    check_nonnegative(name, value)
    if value < minimum:
        msg = f"{name} must be a finite number >= {minimum}; got {value}."
        raise ValueError(msg)


def check_positive(name: str, value: Any) -> None:
    """Refuse what is not a finite number > 0."""
    check_nonnegative(name, value)
    if value == 0:
        msg = f"{name} must be a finite number > 0; got {value}."
        raise ValueError(msg)


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool | np.bool_):
        msg = f"{name} must be True or False; got {value!r} of type {type(value).__name__}."
        raise TypeError(msg)


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse what is not one of the words ``choices``."""
    choices = list(choices)
    if not (isinstance(value, str) and value in choices):
        msg = f"{name} must be one of {choices}; got {value!r}."
        raise ValueError(msg)
