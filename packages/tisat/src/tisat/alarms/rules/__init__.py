"""The alarm rules: members of one registry, under contract tests (``packages/tisat/tests/contract/test_rules.py``).

* ``paper``: the distance of the point to normal points, accumulated without end (a kNN CUSUM);
* ``threshold``: the plain score;
* ``drift``: the score less a constant, accumulated without end, as the released program has it;
* ``excess``: the score over a reference that moves with the data, summed over a few rows and held.

A rule of one's own: subclass :class:`AlarmRule`, then :func:`register_rule`; alarms, monitors, the command line and the
benchmark take it from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tisat.alarms.rules.base import RULES, AlarmRule, Evidence, Memoryless, RuleRun, Scored, register_rule
from tisat.alarms.rules.drift import DriftRule
from tisat.alarms.rules.excess import ExcessRule
from tisat.alarms.rules.paper import PaperRule
from tisat.alarms.rules.threshold import ThresholdRule
from tisat.errors import ParameterError
from tisat.utils.near_names import meant
from tisat.utils.types import Options
from tisat.utils.validation import check_choice

__all__ = [
    "DEFAULT_RULE",
    "RULES",
    "AlarmRule",
    "DriftRule",
    "Evidence",
    "ExcessRule",
    "Memoryless",
    "PaperRule",
    "RuleLike",
    "RuleRun",
    "Scored",
    "ThresholdRule",
    "make_rule",
    "register_rule",
    "seeded_rule",
]

for _rule in (PaperRule, ThresholdRule, DriftRule, ExcessRule):
    register_rule(_rule)
DEFAULT_RULE = "excess"
RuleLike: TypeAlias = str | Options | AlarmRule  # a name, options by name, or a rule


def make_rule(rule: RuleLike, *, like: AlarmRule | None = None, **options: object) -> AlarmRule:
    """Make a rule of its name and options, or return the rule itself.

    Parameters
    ----------
    rule : str, mapping or AlarmRule
        A name (``excess``, ``threshold``, ``paper`` or ``drift``); or options by name, among them ``name``: what ``[rule]`` says in files and ``--rule-set`` at the command line.
    like : AlarmRule, optional
        The rule whose name is meant where a mapping has none, and whose options hold where it is the same rule; excess with its defaults
        unless given.
    options : object
        Parameters of the rule, where ``rule`` is a name.

    Returns
    -------
    AlarmRule
        The rule, unfitted.

    Examples
    --------
    >>> make_rule("paper", end="recovery").end
    'recovery'
    >>> make_rule({"hold": 50}, like=ExcessRule(window=200)).params()["window"]
    200
    """
    if isinstance(rule, Mapping):
        given = {**rule, **options}
        rule = str(given.pop("name", DEFAULT_RULE if like is None else like.name))
        options = {**(like.params() if like is not None and like.name == rule else {}), **given}
    if isinstance(rule, AlarmRule):
        if options:
            raise ParameterError(
                f"The options of a rule must be given where it is made. Got {', '.join(options)} besides {rule!r}."
            )
        return rule
    cls = RULES[check_choice(rule, "rule", "Watch", choices=RULES)]
    options_known = cls.options()
    unknown = [name for name in options if name not in options_known]
    if unknown:
        raise ParameterError(
            f"The rule {rule!r} must have options among {', '.join(options_known)}. Got {unknown[0]!r} instead.{meant(unknown[0], options_known)}"
        )
    return cls(**options)


def seeded_rule(rule: RuleLike, random_state: int) -> AlarmRule:
    """Make a rule; one that draws at random draws by this seed, unless it is given another."""
    if isinstance(rule, AlarmRule):
        return rule
    said = {"name": rule} if isinstance(rule, str) else dict(rule)
    cls = RULES.get(said.get("name", DEFAULT_RULE))
    return make_rule({"random_state": random_state, **said} if cls and "random_state" in cls.options() else said)
