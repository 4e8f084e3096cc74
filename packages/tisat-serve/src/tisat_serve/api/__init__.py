"""The HTTP interface: endpoints are a table (:mod:`tisat_serve.api.table`), from which routes and ``/openapi.json`` are made."""
