"""Random fits."""

from hostile.cases import Case, Kind


def _check(case: Case, folder) -> str:
    return "fitted"


FITS = Kind("fits", {"seed": range(100)}, _check, soak=100_000, short=160, chunk=500)
