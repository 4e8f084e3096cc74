"""How often the channels an alarm blames are those of SMD's published interpretation labels, beside a random ranking.

For every labelled event of each machine: the first alarm raised inside it gives a ranking of channels (the shares the alarm
names); where none is raised the event is missed. The second figure ranks every event, missed or not, by the explanations of
all its rows, each weighted by its row's score.

    python experiments/attribution.py --detector prism --entities machine-1-6,machine-2-1
"""

import argparse
import json
import warnings

import numpy as np
from attribution_figures import hit_rate, ndcg

from tisat.detectors import make
from tisat.errors import CalibrationWarning
from tisat_bench.datasets import load

FIGURES = {
    "HitRate@100%": lambda ranking, contributing: hit_rate(ranking, contributing),
    "HitRate@150%": lambda ranking, contributing: hit_rate(ranking, contributing, share=1.5),
    "NDCG@100%": lambda ranking, contributing: ndcg(ranking, contributing),
    "NDCG@150%": lambda ranking, contributing: ndcg(ranking, contributing, share=1.5),
}


def rankings(entity, detector, budget, rule):
    """(contributing channels, ranking of the alarm or None, ranking of the whole event) for each event."""
    detector.fit(entity.train)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        alarms = detector.alarms(entity.test, false_alarms=budget, rule=rule)
    points = detector.points(entity.test)
    scores = np.nan_to_num(detector.aggregate(points))

    def ranking(rows):
        total = np.zeros(detector.n_channels_)
        for t in rows:
            if not np.isnan(points[t]).all():
                total += scores[t] * detector.explain(entity.test.values[t], points[t]).channels
        return np.argsort(-total, kind="stable").tolist()

    for (start, stop), contributing in entity.interpretation:
        hit = next((alarm for alarm in alarms if start <= alarm.raised < stop), None)
        by_alarm = None if hit is None else [detector.channels_.index(channel) for channel in hit.channels]
        yield contributing, by_alarm, ranking(range(start, stop))


def mean_figures(pairs):
    return {
        name: float(np.mean([figure(ranking, contributing) for contributing, ranking in pairs]))
        for name, figure in FIGURES.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--detector", default="prism")
    parser.add_argument("--entities", default=None)
    parser.add_argument("--budget", default="1/1000 rows")
    parser.add_argument("--rule", default="excess")
    arguments = parser.parse_args()
    wanted = None if arguments.entities is None else arguments.entities.split(",")
    by_alarm, by_event, chance, events = [], [], [], 0
    rng = np.random.default_rng(0)
    for entity in load("smd", entities=wanted):
        for contributing, alarm, event in rankings(entity, make(arguments.detector), arguments.budget, arguments.rule):
            events += 1
            by_event.append((contributing, event))
            if alarm is not None:
                by_alarm.append((contributing, alarm))
            chance += [(contributing, rng.permutation(len(event)).tolist()) for _ in range(50)]
    print(json.dumps({
        "detector": arguments.detector, "rule": arguments.rule, "budget": arguments.budget, "events": events,
        "events with an alarm": len(by_alarm),
        "alarm": mean_figures(by_alarm), "whole event": mean_figures(by_event), "random": mean_figures(chance),
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
