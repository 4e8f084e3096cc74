"""The watch as a service: rows come in over the network, alarms go out, and a person can see the budget.

* :mod:`tisat.serve.store`: one SQLite file, in which everything is before anybody is told;
* :mod:`tisat.serve.engine`: rows in, outcomes out, durable; no network in it;
* :mod:`tisat.serve.view`: what a console or a script can ask: entities, history, alarms, the budget's ledger, what-if;
* :mod:`tisat.serve.people`: labels, proposals, maintenance windows, suppression rules;
* :mod:`tisat.serve.service`: the engine in a thread of its own, with sources and sinks;
* :mod:`tisat.serve.api`: the HTTP interface.

Needs ``pip install '.[serve]'`` in the folder of tisat's source; nothing else in the package imports this room but the command line.
"""
