"""CPU seconds beside benchopt's wall seconds: on a shared machine they say more."""

import time

from benchopt import BaseSolver


class TimedSolver(BaseSolver):
    """A solver whose ``fit`` is timed; all that ``run`` does is to call it."""

    def run(self, n_iter):
        """Fit so many iterations."""
        began = time.process_time()
        self.fit(n_iter)
        self.cpu = time.process_time() - began

    def get_result(self):
        """U, V and the CPU seconds of the last fit."""
        U, V = self.factors()
        return {"U": U, "V": V, "cpu": self.cpu}
