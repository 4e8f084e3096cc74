"""The alarm rules: members of one registry, under contract tests (``packages/tisat/tests/contract/test_rules.py``).

* ``paper``: the distance of the point to normal points, accumulated without end (a kNN CUSUM);
* ``threshold``: the plain score;
* ``drift``: the score less a constant, accumulated without end, as the released program has it;
* ``excess``: the score over a reference that moves with the data, summed over a few rows and held.

A rule of one's own: subclass :class:`AlarmRule`, then :func:`register_rule`; alarms, monitors, the command line and the
benchmark take it from there.
"""

from __future__ import annotations

from typing import Any

from tisat.alarms.rules.base import RULES, AlarmRule, Evidence, Memoryless, RuleRun, Scored, register_rule
from tisat.alarms.rules.drift import DriftRule
from tisat.alarms.rules.excess import ExcessRule
from tisat.alarms.rules.paper import PaperRule
from tisat.alarms.rules.threshold import ThresholdRule
from tisat.errors import ParameterError
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
    "RuleRun",
    "Scored",
    "ThresholdRule",
    "make_rule",
    "register_rule",
]

for _rule in (PaperRule, ThresholdRule, DriftRule, ExcessRule):
    register_rule(_rule)
DEFAULT_RULE = "excess"


def make_rule(rule: str | AlarmRule, **options: Any) -> AlarmRule:
    """A rule by its name and options, or the rule itself.

    Examples
    --------
    >>> make_rule("paper", end="recovery").end
    'recovery'
    """
    if isinstance(rule, AlarmRule):
        if options:
            raise ParameterError(
                f"The options of a rule must be given where it is made. Got {', '.join(options)} besides {rule!r}."
            )
        return rule
    cls = RULES[check_choice(rule, "rule", "make_rule", choices=RULES)]
    known = cls.options()
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ParameterError(
            f"The rule {rule!r} must have options among {', '.join(known)}. Got {unknown[0]!r} instead."
        )
    return cls(**options)
