"""``python -m tisat.cli``."""

from tisat.cli import main

main()
