"""The whole flow on a generated plant: train, set an alarm budget, raise alarms, evaluate beside the fools, write a page.

:func:`run_demo` is the package on one screen; :func:`demo_page` puts its result on paper. Neither computes anything that
the rooms below do not offer to every user.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tisat._extras import require
from tisat.base import Detector
from tisat.datasets.synthetic import Fault, Plant, make_plant
from tisat.detectors import make
from tisat.metrics import AlarmCounts, SPDCurve, best_adjusted_f1, chance_corrected, count_alarms, spd_curve
from tisat.report.page import Picture, Section, Table, figure_to_svg, render_page
from tisat.sequential.alarms import Alarm, Alarms

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DELTA_MAX = 100  # instants: the headline of the specification
BUDGET = "1/day"
DAYS = 15  # of nominal data: a fifth is held out, and three budget periods must fit into it
RIVALS = ("linear-mean", "last-value", "random-guess")
PARAMETERS: dict[str, dict[str, Any]] = {"tisat": {"stride": 2}}  # every second window: half the training time


@dataclass(frozen=True)
class Demo:
    """What the demo did."""

    plant: Plant
    detector: Detector
    alarms: Alarms
    counts: AlarmCounts  # the alarms against the labelled events
    curves: dict[str, SPDCurve]  # by row of the table
    adjusted: dict[str, float]  # best point-adjusted F1, by the same rows
    seconds: float


def run_demo(*, detector: str = "tisat", random_state: int = 3, say: Callable[[str], None] = lambda _: None) -> Demo:
    """Generate, train, alarm, evaluate.

    Parameters
    ----------
    detector : str
        A registered name.
    random_state : int
        Seed of the plant.
    say : callable
        Told what is being done.
    """
    started = time.perf_counter()
    plant = make_plant(n_train=DAYS * 1440, random_state=random_state)
    say(f"A plant of {plant.train.n_channels} channels: {DAYS} days of nominal data, then {plant.test} with faults")

    fitted = make(detector, **PARAMETERS.get(detector, {})).fit(plant.train)
    say(f"Trained {fitted!r} on {fitted.trained_on_['rows_used']:,} rows; the last fifth is held out for the budget")

    alarms = fitted.alarms(plant.test, false_alarms=BUDGET)
    say(f"At most {BUDGET}: {alarms.calibration}")

    labels = plant.test.labels
    counts = count_alarms(labels, alarms.active, delta_max=DELTA_MAX, timestamps=plant.test.timestamps)
    scores = {
        f"{detector}, plain score": alarms.scores,
        f"{detector}, {alarms.calibration.rule} rule": alarms.statistic,
    }
    for name in RIVALS:
        if name != detector:
            scores[f"{name}, plain score"] = make(name).fit(plant.train).decision_function(plant.test)
    curves = {row: spd_curve(labels, values, delta_max=DELTA_MAX) for row, values in scores.items()}
    adjusted = {row: best_adjusted_f1(labels, values).f1 for row, values in scores.items()}
    return Demo(plant, fitted, alarms, counts, curves, adjusted, time.perf_counter() - started)


def score_rows(demo: Demo) -> list[tuple[str, float, float, float]]:
    """SPD, chance-corrected SPD and best point-adjusted F1, detectors first, then the fools on the same labels."""
    floors = next(iter(demo.curves.values())).floors
    rows = [(row, float(c.score), c.chance_corrected, demo.adjusted[row]) for row, c in demo.curves.items()]
    for name, score in floors.named.items():
        rows.append((f"floor: {name}", float(score), chance_corrected(float(score), floors.best), float("nan")))
    return rows


def _fault_of(alarm: Alarm, faults: Sequence[Fault]) -> Fault | None:
    """The fault in whose window the alarm was raised."""
    return next((f for f in faults if f.start <= alarm.raised <= max(f.stop, f.start + DELTA_MAX)), None)


def alarm_rows(demo: Demo) -> list[tuple[Any, ...]]:
    """One row an alarm: when, the onset estimate, what it found and how late, the channels it blames and the true ones."""
    names = demo.plant.test.channels
    rows: list[tuple[Any, ...]] = []
    for alarm in demo.alarms:
        fault = _fault_of(alarm, demo.plant.faults)
        blamed = ", ".join(f"{name} {share:.0%}" for name, share in list(alarm.channels.items())[:2])
        true = "" if fault is None else ", ".join(names[c] for c in fault.channels)
        found = "false alarm" if fault is None else fault.kind
        late = None if fault is None else alarm.raised - fault.start
        rows.append((str(alarm.raised_time or alarm.raised)[:16], found, late, blamed, true))
    return rows


def missed(demo: Demo) -> list[Fault]:
    """Faults in whose window no alarm was raised."""
    return [fault for fault, hit in zip(demo.plant.faults, demo.counts.detected, strict=True) if not hit]


def _loss_picture(demo: Demo) -> Figure | None:
    history: Sequence[dict[str, float]] = getattr(demo.detector, "history_", ())
    if len(history) < 2:
        return None
    figure, axes = require("matplotlib.pyplot", whose="The report").subplots(figsize=(6, 2.6))
    for name in [key for key in history[0] if key != "epoch"]:
        axes.plot([row["epoch"] for row in history], [row[name] for row in history], marker="o", ms=3, label=name)
    axes.set(xlabel="epoch", ylabel="loss", yscale="log")
    axes.legend(frameon=False)
    return figure  # type: ignore[no-any-return]


def demo_page(demo: Demo, *, command: str = "tisat demo") -> str:
    """The result as one self-contained HTML page."""
    first = next(iter(demo.curves.values()))
    curve_figure = first.plot().figure
    calibration = demo.alarms.calibration
    realised = "no alarm" if calibration.realised is None else f"one in {calibration.realised:,.0f} instants"
    escaped = "; ".join(f"{f.kind} at instant {f.start}" for f in missed(demo)) or "none"
    training: list[str | Table | Picture] = [
        f"{demo.detector!r} was fitted on {demo.detector.trained_on_['rows_used']:,} of {len(demo.plant.train):,} nominal rows; "
        "the rest was held out to find the threshold."
    ]
    losses = _loss_picture(demo)
    if losses is not None:
        training.append(Picture(figure_to_svg(losses), "Loss by epoch, on the training rows and on their tail."))
    sections = [
        Section(
            "Alarms",
            [
                f"Asked for at most {calibration.budget} of false alarms. On the labelled test data: {demo.counts}. Missed: {escaped}.",
                Table(
                    ("raised", "what it found", "delay", "channels blamed", "channels at fault"),
                    alarm_rows(demo),
                    "Delay in instants (minutes) since the fault began. Shares are of the evidence since the onset estimate.",
                ),
                Picture(
                    figure_to_svg(demo.alarms.plot(demo.plant.test)),
                    "The channels most blamed, then the statistic with its threshold. Faults are shaded; alarms and onsets are marked.",
                ),
            ],
        ),
        Section(
            "What the scores are worth",
            [
                "SPD rewards each event once, penalises each false alarm once and pays for speed; the floors are what fools get on the "
                "same labels. The last column is the score most papers report: random guessing wins it, which is why it is not used here.",
                Table(
                    ("score", "SPD", "chance-corrected", "point-adjusted F1 (oracle)"),
                    score_rows(demo),
                    f"delta_max = {DELTA_MAX} instants. Oracle: the best threshold, chosen on the test labels.",
                    strong=(0, 1),
                ),
                Picture(figure_to_svg(curve_figure), "Alarm precision against normalised delay; the area is SPD."),
            ],
        ),
        Section(
            "The budget",
            [
                f"Target: one false alarm in {calibration.target:,.0f} instants. Realised on {calibration.instants:,} held-out nominal instants: "
                f"{realised}, 95 % interval {calibration.low:,.0f} to {'unbounded' if calibration.high is None else f'{calibration.high:,.0f}'}. "
                f"Method: {calibration.method}; rule: {calibration.rule}.",
                *calibration.notes,
            ],
        ),
        Section("Training", training),
    ]
    lead = f"A generated plant, {len(demo.plant.test):,} instants of test data with {demo.counts.n_events} labelled faults; {demo.seconds:.0f} s in all."
    return render_page("tisat: from a series to alarms you can afford", sections, lead=lead, command=command)


def demo_document(demo: Demo) -> dict[str, Any]:
    """The result as plain values."""
    return {
        "detector": repr(demo.detector),
        "budget": demo.alarms.calibration.to_json(),
        "events": demo.counts.n_events,
        "detected": demo.counts.true_alarms,
        "false_alarms": demo.counts.n_false_alarms,
        "mean_delay": demo.counts.average_delay,
        "alarms": demo.alarms.to_rows(),
        "scores": [
            dict(zip(("score", "spd", "chance_corrected", "adjusted_f1_oracle"), row, strict=True))
            for row in score_rows(demo)
        ],
        "missed": [fault.kind for fault in missed(demo)],
        "seconds": float(np.round(demo.seconds, 2)),
    }
