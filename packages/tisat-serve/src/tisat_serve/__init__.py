"""Run a watch as a service: rows come in over the network, alarms go out, and a person can see the budget.

* :mod:`tisat_serve.store`: one SQLite file, in which everything is before anybody is told;
* :mod:`tisat_serve.engine.engine`: rows in, outcomes out, durable; no network in it;
* :mod:`tisat_serve.views.fleet_view`: what a console or a script can ask: entities, history, alarms, the budget's ledger, what-if;
* :mod:`tisat_serve.feedback.operator`: labels, proposals, maintenance windows, suppression rules;
* :mod:`tisat_serve.service`: the engine in a thread of its own, with sources and sinks;
* :mod:`tisat_serve.api`: the HTTP interface.

It imports only public names of ``tisat``.
"""

__version__ = "1.0.0"
