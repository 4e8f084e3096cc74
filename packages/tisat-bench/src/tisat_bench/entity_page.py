"""One entity on one page: the series, each system's statistic with its threshold, alarms, missed events and false alarms.

The threshold is the highest value the statistic reached on the system's normal rows: it saw no test row and no label. The
labels only colour the picture and sort the alarms into true and false.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tisat.metrics import count_alarms
from tisat.plotting.charts import Group, Mark, channel_panel, evidence_panel, lanes, places, span, thinned
from tisat.plotting.page import Item, Section, Table, render_page
from tisat.plotting.phrases import terms_of
from tisat_bench.captions import rule_title
from tisat_bench.evaluation import Results
from tisat_bench.frozen import Frozen

CHANNELS = 5  # channels drawn: those that move most in the test series, in units of training
POINTS = 3000  # of one curve; the least and the greatest value of each stretch are kept
RULE = "excess"


def normal_threshold(evaluation: Results, identifier: str, rule: str) -> float:
    """The highest value the rule's statistic reached on normal rows.

    The next float above it is the threshold.
    """
    return float(np.nextafter(max(evaluation.normal_top(identifier, rule), 0.0), np.inf))


def entity_page(
    frozen: Frozen, evaluation: Results, *, dataset: str, entity: str, systems: Sequence[str], command: str = ""
) -> str | None:
    """The page as HTML, or None where no system has this entity."""
    train, test = evaluation.experiment.sources[dataset].pair(entity)
    delta = frozen.about["delta_max"]
    runs = {}
    for name in systems:
        found, entities = evaluation.finished(name, dataset)
        if found and entity in entities:
            runs[name] = found[0].done[entity]
    if not runs:
        return None
    spread = np.nanstd(train.values, axis=0)
    moved = np.nanstd(test.values, axis=0) / np.where(spread > 0, spread, 1.0)
    channels = sorted(np.argsort(-moved)[:CHANNELS].tolist())
    x, rows = np.arange(len(test), dtype=np.float64), thinned(len(test), most=POINTS)
    panels = [{**channel_panel(test.channels[c], test.values[:, c], None, rows, hidden=i >= 2), "of": ""} for i, c in enumerate(channels)]  # fmt: skip
    table = []
    assert test.labels is not None, "a published data set is labelled"
    marks = [Mark(*span(x, int(start), int(stop)), "fault", "event") for start, stop in test.events]
    for number, (name, identifier) in enumerate(runs.items()):
        statistic = evaluation.statistic(identifier, RULE)
        threshold = normal_threshold(evaluation, identifier, RULE)
        counts = count_alarms(test.labels, np.nan_to_num(statistic, nan=-np.inf) >= threshold, delta_max=delta)
        drawn = evidence_panel(np.asarray(statistic), threshold, rows, name=f"{name}: evidence")
        panels.append({**drawn, "hidden": number >= 2, "of": name})
        for (start, stop), hit, delay in zip(test.events, counts.detected, counts.delays, strict=True):
            kind = "found" if hit else "missed"
            told = f"{name}: event at row {start} {f'found after {delay:g} rows' if hit else 'missed'}"
            marks.append(Mark(*span(x, int(start), int(stop)), kind, kind, name, told))
        marks += [
            Mark(*span(x, int(t), int(t) + 1), "false", "false", name, f"{name}: false alarm at row {t}")
            for t in counts.false_alarms[0]
        ]
        missed = test.events[~counts.detected, 0]
        delays = counts.delays[counts.detected]
        table.append(
            (
                name,
                counts.n_events,
                counts.true_alarms,
                counts.n_events - counts.true_alarms,
                counts.n_false_alarms,
                float(np.median(delays)) if len(delays) else float("nan"),
                ", ".join(map(str, missed[:8].tolist())) or "none",
            )
        )
    best = max(range(len(table)), key=lambda i: (table[i][2], -table[i][4]))
    group = Group(
        places(x, rows),
        [lanes("Events and false alarms of each system", tuple(runs), height=62 + 46 * len(runs)), *panels],
        marks,
        axis={"label": "row of the test series"},
        legend=("found", "missed", "false"),
        caption=f"One lane for each system, first seed, under the rule '{RULE}'; the threshold is the highest value on normal rows. Channels: the {len(channels)} that move most. "
        "The names above switch panels on and off; drag to zoom.",
    )
    content: list[Item] = [
        group,
        Table(
            ("system", "events", "found", "missed", "false alarms", "median delay of those found", "missed at row"),
            table,
            caption=f"At a threshold from training data; an event is found within delta_max = {delta} rows of its beginning.",
            best=[(best, 0)],
        ),
    ]
    spd = {(e.system, e.rule): e.spd for e in frozen.entities if e.dataset == dataset and e.entity == entity}
    rules = frozen.about["rules"]
    if spd:
        content.append(
            Table(
                ("system", *(rule_title(rule) for rule in rules)),
                [
                    (one["name"], *(spd.get((one["name"], rule), float("nan")) for rule in rules))
                    for one in frozen.about["systems"]
                    if any((one["name"], rule) in spd for rule in rules)
                ],
                caption=f"SPD of this entity under each rule, delta_max = {delta}, mean over seeds.",
                terms=terms_of("SPD", "alarm rule", "delta_max"),
            )
        )
    name, _, found_events, _, false, _, _ = table[best]
    return render_page(
        f"{frozen.titles[dataset]} {entity}",
        [Section("Series, evidence, alarms", content)],
        answer=f"{name} finds {found_events} of {len(test.events)} events with {false} false alarm{'s' * (false != 1)}, the most of the {len(table)} systems shown.",
        lead=f"{len(test):,} rows, {test.n_channels} channels, {len(test.events)} events.",
        command=command or frozen.about["command"],
    )
