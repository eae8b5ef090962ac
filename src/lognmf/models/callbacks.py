"""Progress of a fit: told to listeners, and to scikit-learn's callbacks where its version has them."""

from __future__ import annotations

import math
from contextlib import ExitStack
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lognmf.progress import printed, stage, warn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return ``method`` as it is: there are no callbacks to tear down."""
        return method


class Watcher:
    """Called at every evaluation; tells how far the fit is and asks the callbacks.

    At the end of a fit it warns where ``max_iter`` came before convergence.
    """

    def __init__(self, estimator: Any, X: Any, goal: int) -> None:
        self.estimator, self.X, self.goal = estimator, X, goal
        self.context: Any = None
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        estimator = self.estimator
        self._opened.enter_context(printed(int(estimator.verbose)))
        at_most = estimator.tol > 0 or any(getattr(estimator, name) == "auto" for name in estimator._auto)
        fit = stage(type(estimator).__name__, self.goal, "iterations", at_most=at_most)
        self.stage = self._opened.enter_context(fit)
        if getattr(self.estimator, "_skl_callbacks", None) or hasattr(self.estimator, "_parent_callback_ctx"):
            chooses = any(getattr(self.estimator, name) == "auto" for name in self.estimator._auto)
            subtasks = None if chooses else math.ceil(self.goal / self.estimator.eval_every)
            self.context = self.estimator._init_callback_context(max_subtasks=subtasks)
            self.context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return self

    def __call__(self, iteration: int, objective: np.ndarray) -> bool:
        """Report one evaluation; True if a callback wants to stop."""
        self.stage.move(iteration, f"objective {float(objective.min()):.6g}")
        if self.context is None:
            return False
        task = self.context.subcontext(task_name=f"iteration {iteration}")
        task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return bool(task.call_on_fit_task_end(estimator=self.estimator, X=self.X))

    def __exit__(self, kind: type | None, *error: Any) -> None:
        estimator = self.estimator
        if kind is None:
            self.stage.done, self.stage.note = estimator.n_iter_, f"objective {estimator.objective_:.6g}"
        self._opened.__exit__(kind, *error)
        if kind is not None:
            return
        asked = estimator._converges and estimator.tol > 0 and self.goal > 0
        if asked and estimator.stop_reason_ == "max_iter":
            msg = (
                f"{type(estimator).__name__} ended after max_iter={self.goal} iterations without reaching "
                f"tol={estimator.tol:g}: increase max_iter or tol, or set tol=0 if that is what you want."
            )
            warn(msg, ConvergenceWarning)
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=estimator, X=self.X)
