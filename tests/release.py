"""Checks what ``python -m build`` made: ``python tests/release.py dist`` (part of ``make release-check``).

The sdist is small and holds what the commands of README.md need. The wheel is installed in a new environment,
where the first example of README.md and the command line run outside the repository.
"""

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 2_000_000  # bytes of the sdist
NEEDED = ("Makefile", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", "docs", "tests", "src")


def check_sdist(file):
    """Refuse an sdist that is too large or lacks something."""
    size = file.stat().st_size
    with tarfile.open(file) as archive:
        held = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    missing = sorted(set(NEEDED) - held)
    if size > LARGEST or missing:
        sys.exit(f"{file.name} has {size:,} bytes (at most {LARGEST:,}) and lacks {missing or 'nothing'}.")
    print(f"{file.name}: {size:,} bytes")


def check_wheel(file):
    """Install the wheel where nothing else is, and use it."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[1]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder, "venv"), with_pip=True)
        programs = Path(folder, "venv", "Scripts" if sys.platform == "win32" else "bin")
        for command in (
            [programs / "python", "-m", "pip", "install", "--quiet", f"{file.resolve()}[cli]"],
            [programs / "python", "-c", example + "print(model, labels[:10])"],
            [programs / "lognmf", "fit", "digits", "-k", "5", "--out", "results"],
        ):
            subprocess.run(command, cwd=folder, check=True)
    print(f"{file.name}: installs and runs")


if __name__ == "__main__":
    dist = Path(sys.argv[1])
    check_sdist(next(dist.glob("*.tar.gz")))
    check_wheel(next(dist.glob("*.whl")))
