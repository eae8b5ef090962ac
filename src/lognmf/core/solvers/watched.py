"""A rule that remembers whether the outlier part was ever needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lognmf.core.arrays import Array, namespace
from lognmf.core.problem import Problem
from lognmf.core.rule import State
from lognmf.core.solvers.multiplicative import Multiplicative


@dataclass(frozen=True)
class Watched:
    """``rule``, carrying also which settings ever set a sample aside, (1, B).

    While none was set aside, the iterates are those of the plain fit, and of every larger
    weight of the outlier part: what is not worth its price is not worth a higher one.
    """

    rule: Multiplicative

    @property
    def problem(self) -> Problem:
        """What the rule minimises."""
        return self.rule.problem

    def start(self, U: Array, V: Array) -> State:
        """The state from which to step."""
        state = self.rule.start(U, V)
        never = namespace(V).zeros_like(V[:1, :, 0]) > 0
        return State(state.U, state.V, (*state.aux, never))

    def step(self, state: State) -> State:
        plain, ever = self.seen(state)
        kept = self.rule.separate(plain)
        plain = self.rule.move(plain, kept)
        if kept is not None:
            ever = ever | namespace(kept).any(kept < 1, axis=0)[None, :]
        return State(plain.U, plain.V, (*plain.aux, ever))

    @staticmethod
    def seen(state: State) -> tuple[State, Array]:
        """The state of ``rule``, and which settings ever set a sample aside (1, B)."""
        *aux, ever = state.aux
        return State(state.U, state.V, tuple(aux)), ever

    def value(self, state: State) -> Array:
        return self.rule.value(self.seen(state)[0])

    def take(self, index: np.ndarray) -> Watched:
        return Watched(self.rule.take(index))
