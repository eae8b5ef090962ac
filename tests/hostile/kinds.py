"""Every kind of hostile case. A new module of cases is named here, and nowhere else."""

from hostile.cases import Kind
from hostile.files import FILES
from hostile.fits import FITS

KINDS: dict[str, Kind] = {kind.name: kind for kind in (FITS, FILES)}
