"""Helpers that every package of tisat shares: types, validation, optional packages, progress, locks, random numbers."""
