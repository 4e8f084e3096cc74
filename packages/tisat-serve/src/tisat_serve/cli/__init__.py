"""The verb that this package adds to the command line: ``tisat serve``."""
