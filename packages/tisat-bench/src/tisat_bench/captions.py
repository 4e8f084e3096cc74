"""Captions of tables: data, seeds, training of networks, what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from tisat.alarms.rules import RULES
from tisat_bench.datasets.cards import NAMES, card
from tisat_bench.figures import Figure
from tisat_bench.frozen import Frozen

GUESS = "Random Guess"  # what experiments and printed tables call the system that looks at nothing
FEWER = "*"  # marks a figure on fewer entities than the others


def rule_title(rule: str) -> str:
    """A rule as tables print it.

    Its name, where results come from a rule that is not registered here.
    """
    return RULES[rule].title if rule in RULES else rule


def rule_with_options(frozen: Frozen, rule: str) -> str:
    """A rule as captions print it, with the options the experiment gave it."""
    given = frozen.about.get("rule_options", {}).get(rule, {})
    return rule_title(rule) + (f" ({', '.join(f'{name} = {value}' for name, value in given.items())})" if given else "")


def data_sentence(frozen: Frozen) -> str:
    """The sentence about data that every caption carries."""
    counts, titles = frozen.about["data"], frozen.titles
    words = {"smd": "machines", "msl": "channels", "smap": "channels", "plants": "generated plants"}
    parts = [f"{titles[name]} {number} {words.get(name, 'entities')}" for name, number in counts.items()]
    fewer = {
        name: len(card(name).rows) for name, number in counts.items() if name in NAMES and number < len(card(name).rows)
    }
    said = [f"{titles[name]}: {counts[name]} of {of}, those whose values are at hand" for name, of in fewer.items()]
    extra = f" ({'; '.join(said)})" if said else ""
    telemetry = "; MSL and SMAP: the telemetry value alone" if {"msl", "smap"} & set(counts) else ""
    return f"Data: {', '.join(parts)}{extra}{telemetry}."


def _training_sentence(frozen: Frozen, shown: Sequence[Figure]) -> str:
    """Preset, whose rows it was trained on, gradient steps and anchoring of every network that is shown."""
    sentences = []
    for system in frozen.about["systems"]:
        steps = [f.steps for f in shown if f.system == system["name"] and f.steps > 0]
        if not steps or "settings" not in system:
            continue
        least, most = min(steps), max(steps)
        count = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        settings = system["settings"]
        words = [
            settings.get("preset"),
            "one model per data set" if system.get("pooled") else None,
            f"{count} steps",
            f"anchor {settings['anchor']}" if "anchor" in settings else None,
        ]
        sentences.append(f"{system['name']} ({', '.join(word for word in words if word)})")
    return f"Networks, with preset, median gradient steps and anchoring: {'; '.join(sentences)}." if sentences else ""


def _exceptions(frozen: Frozen, shown: Sequence[Figure]) -> list[str]:
    """Sentences on systems with fewer entities, failures and notes."""
    titles = frozen.titles
    fewer = sorted({(f.system, titles[f.dataset], f.entities, f.of) for f in shown if f.entities < f.of})
    failed = sorted({(f.system, titles[f.dataset], f.failed) for f in shown if f.failed})
    return [
        f"{FEWER} on fewer entities, not comparable with its column: " + ", ".join(f"{s} on {n} of {of} of {d}" for s, d, n, of in fewer) + "."
        if fewer else "",
        "Failed tasks: " + ", ".join(f"{s} on {d}: {n}" for s, d, n in failed) + "." if failed else "",
        " ".join(
            f"{s['name']}: {s['note']}."
            for s in frozen.about["systems"]
            if s["note"] and any(f.system == s["name"] for f in shown)
        ),
    ]  # fmt: skip


def caption(frozen: Frozen, shown: Sequence[Figure], *sentences: str) -> str:
    """The sentences of a table, and those every table carries."""
    random = sorted({figure.seeds for figure in shown if figure.seeds})
    seeds = (
        f"Systems with randomness: mean of {' or '.join(map(str, random))} seed{'s' * (random[-1] > 1)}."
        if random
        else ""
    )
    parts = [*sentences, data_sentence(frozen), seeds, _training_sentence(frozen, shown), *_exceptions(frozen, shown)]
    return " ".join(part for part in parts if part)
