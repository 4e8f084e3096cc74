"""The console: pages a person reads and decides on, rendered here, made lively by a few scripts. See :mod:`.pages`."""

from __future__ import annotations

from tisat_serve.console.pages import routes

__all__ = ["routes"]
