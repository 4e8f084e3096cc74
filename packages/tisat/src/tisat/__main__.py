"""``python -m tisat``: the same as the ``tisat`` command."""

from tisat.cli import main

main()
