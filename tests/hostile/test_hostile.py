"""The short run: the first cases of every kind."""

import pytest

from hostile.cases import draw, line, outcome, simplified
from hostile.kinds import KINDS

SEED = 0
PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", KINDS)
def test_no_case_breaks_a_promise(name, part):
    kind = KINDS[name]
    for number in range(part, kind.short, PARTS):
        case = draw(kind, SEED, number)
        error = outcome(kind, case)[1]
        assert error is None, f"{error}\nrepeat it by: {line(kind, simplified(kind, case))}"
