"""Progress of a fit: printed lines, and scikit-learn's callbacks where its version has them."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return ``method`` as it is: there are no callbacks to tear down."""
        return method


class Watcher:
    """Called at every evaluation; prints at most once per second and asks the callbacks.

    At the end of a fit it warns where ``max_iter`` came before convergence.
    """

    def __init__(self, estimator: Any, X: Any, goal: int) -> None:
        self.estimator, self.X, self.goal = estimator, X, goal
        self.began = self.printed = time.perf_counter()
        self.last = -1  # the iteration of the last line
        self.context: Any = None

    def __enter__(self) -> Self:
        if getattr(self.estimator, "_skl_callbacks", None) or hasattr(self.estimator, "_parent_callback_ctx"):
            chooses = any(getattr(self.estimator, name) == "auto" for name in self.estimator._auto)
            subtasks = None if chooses else math.ceil(self.goal / self.estimator.eval_every)
            self.context = self.estimator._init_callback_context(max_subtasks=subtasks)
            self.context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return self

    def __call__(self, iteration: int, objective: np.ndarray) -> bool:
        """Report one evaluation; True if a callback wants to stop."""
        now = time.perf_counter()
        if self.estimator.verbose and (now - self.printed >= 1 or self.estimator.verbose > 1):
            self.printed = now
            self._print(iteration, float(objective.min()), now - self.began)
        if self.context is None:
            return False
        task = self.context.subcontext(task_name=f"iteration {iteration}")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, X=self.X))

    def __exit__(self, kind: type | None, *_: object) -> None:
        if kind is not None:
            return
        estimator = self.estimator
        if estimator.verbose and self.last != estimator.n_iter_:
            self._print(estimator.n_iter_, estimator.objective_, time.perf_counter() - self.began)
        asked = estimator._converges and estimator.tol > 0 and self.goal > 0
        if asked and estimator.stop_reason_ == "max_iter":
            msg = (
                f"{type(estimator).__name__} ended after max_iter={self.goal} iterations without reaching "
                f"tol={estimator.tol:g}: increase max_iter or tol, or set tol=0 if that is what you want."
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=2)
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=estimator, X=self.X)

    def _print(self, iteration: int, objective: float, seconds: float) -> None:
        self.last = iteration
        where = f"iteration {iteration} of at most {self.goal}"
        print(f"{type(self.estimator).__name__}: {where}, objective {objective:.6g}, {seconds:.1f} s")  # noqa: T201
