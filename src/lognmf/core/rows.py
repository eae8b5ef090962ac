"""Arrays with one row per sample: in this process, or in blocks on the workers of a cluster.

A factor V, or the residual norm of every sample, is an array or a `DistributedRows`. What is done with it is
a function of some rows, which `each` and `reduced` call: once with all of them where they are an array.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Rows: TypeAlias = Any
"""An array whose first axis are the samples, or `DistributedRows`."""

Combine = Callable[[Any, Any], Any]
"""How the results of two blocks become one: `operator.add`, or a minimum or maximum."""


class DistributedRows(ABC):
    """Rows that are in other processes."""

    @abstractmethod
    def each(self, function: Callable[..., Any], rows: Sequence[Rows], shared: Sequence[Any]) -> Rows:
        """`each` for rows of which at least one is distributed."""

    @abstractmethod
    def reduced(
        self, function: Callable[..., Any], rows: Sequence[Rows], shared: Sequence[Any], combine: Combine
    ) -> tuple[Any, ...]:
        """`reduced` for rows of which at least one is distributed."""

    @abstractmethod
    def halves(self, penalty: Any) -> Any:
        """The half gradients of a penalty, as rows for `Data.map_rows`."""

    @abstractmethod
    def penalty_value(self, penalty: Any) -> Any:
        """The value (B,) of a penalty."""

    @abstractmethod
    def at(self, index: Any) -> Any:
        """The rows ``index``, which are in order, here."""

    @abstractmethod
    def gathered(self, most: int | None = None) -> Any:
        """The rows as one NumPy array here; of more than ``most``, evenly spaced ones."""


def distributed(*rows: Rows) -> DistributedRows | None:
    """The first of the ``rows`` that is distributed; None if all are arrays."""
    return next((F for F in rows if isinstance(F, DistributedRows)), None)


def each(function: Callable[..., Any], *rows: Rows, shared: Sequence[Any] = ()) -> Rows:
    """``function(*rows, *shared)``, a function that treats every row on its own."""
    away = distributed(*rows)
    return function(*rows, *shared) if away is None else away.each(function, rows, shared)


def reduced(
    function: Callable[..., tuple[Any, ...]],
    *rows: Rows,
    shared: Sequence[Any] = (),
    combine: Combine = operator.add,
) -> tuple[Any, ...]:
    """``function(*rows, *shared)``, a tuple of sums over the rows (or of minima, see ``combine``)."""
    away = distributed(*rows)
    return function(*rows, *shared) if away is None else away.reduced(function, rows, shared, combine)


def halves(penalty: Any, V: Rows) -> Any:
    """The half gradients of a penalty on V, as an argument of `Data.map_rows`."""
    away = distributed(V)
    return penalty.halves(V) if away is None else away.halves(penalty)


def penalty_value(penalty: Any, V: Rows) -> Any:
    """The value (B,) of a penalty on V."""
    away = distributed(V)
    return penalty.value(V) if away is None else away.penalty_value(penalty)


def at(F: Rows, index: Any) -> Any:
    """The rows ``index``, which are in order, as an array in this process."""
    away = distributed(F)
    return F[index] if away is None else away.at(index)


def here(F: Rows, most: int | None = None) -> Any:
    """The rows as an array in this process; of more than ``most`` distributed ones, evenly spaced ones."""
    away = distributed(F)
    return F if away is None else away.gathered(most)
