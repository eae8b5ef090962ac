"""Every kind of hostile case. A new module of cases is named here, and nowhere else."""

from hostile.cases import Kind
from hostile.files import FILES
from hostile.fits import FITS
from hostile.kills import KILLS
from hostile.opinions import OPINIONS
from hostile.stores import STORES
from hostile.threads import THREADS

KINDS: dict[str, Kind] = {kind.name: kind for kind in (FITS, OPINIONS, FILES, STORES, KILLS, THREADS)}
