"""Every kind of hostile case. A new module of cases is named here, and nowhere else."""

from hostile.cases import Kind
from hostile.fits import FITS
from hostile.opinions import OPINIONS

KINDS: dict[str, Kind] = {kind.name: kind for kind in (FITS, OPINIONS)}
