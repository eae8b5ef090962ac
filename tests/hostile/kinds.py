"""Every kind of hostile case. A new module of cases is named here, and nowhere else."""

from hostile.cases import Kind
from hostile.fits import FITS
from hostile.stores import STORES

KINDS: dict[str, Kind] = {kind.name: kind for kind in (FITS, STORES)}
