"""``python -m lognmf`` is the command ``lognmf``."""

from lognmf.cli.main import main

if __name__ == "__main__":
    main()
