"""The verbs that this package adds to the command line: ``tisat bench``, ``tisat data``, ``tisat tables``."""
