"""The whole flow on a generated plant: learn, set an alarm budget, raise alarms, evaluate beside the trivial baselines, write a page.

:func:`run_demo` is the package on one screen; :func:`demo_page` puts its result on paper. Neither computes anything that
the packages below do not offer to every user.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tisat.alarms.alarms import Alarm, Alarms
from tisat.alarms.plot import contributing
from tisat.datasets.synthetic import Fault, Plant, make_plant
from tisat.detectors import make
from tisat.metrics import AlarmCounts, SPDCurve, best_adjusted_f1, chance_corrected, count_alarms, spd_curve
from tisat.plotting.charts import Group, Mark, alarm_chart, curves, span, time_axis
from tisat.plotting.page import Dot, Dots, Item, Key, Section, Table, render_page
from tisat.plotting.phrases import curve_group, terms_of
from tisat.registry import DEFAULT
from tisat.utils.types import Array, JsonDict, Params
from tisat.watch.watch import Watch

DELTA_MAX = 100  # rows: the headline of the specification
BUDGET = "1/day"
DAYS = 15  # of normal data
WEEKS, FAULTS = 4, 14  # of the test: two faults of each kind, so that one unlucky draw is not the result
MINUTES_A_DAY = 1440
RIVALS = ("linear-mean", "last-value", "random-guess")
PARAMETERS: dict[str, Params] = {"tisat": {"stride": 2}}  # every second window: half the training time
ALARM_COLUMNS = ("raised", "what it was", "after", "what it looks like", "why", "channels at fault")
FAULT_COLUMNS = ("fault", "began", "channels", "outcome")
SCORE_COLUMNS = ("score", "SPD", "chance-corrected", "point-adjusted F1 (oracle)")


@dataclass(frozen=True)
class Demo:
    """The results of the demo."""

    plant: Plant
    watch: Watch
    alarms: Alarms
    counts: AlarmCounts  # the alarms against the labelled events
    curves: dict[str, SPDCurve]  # by row of the table
    adjusted: dict[str, float]  # best point-adjusted F1, by the same rows
    seconds: float


def run_demo(*, detector: str = DEFAULT, random_state: int = 3, say: Callable[[str], None] = lambda _: None) -> Demo:
    """Generate, learn, alarm, evaluate.

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
    plant = make_plant(
        n_train=DAYS * MINUTES_A_DAY, n_test=WEEKS * 7 * MINUTES_A_DAY, n_faults=FAULTS, random_state=random_state
    )
    say(f"A plant of {plant.train.n_channels} channels: {DAYS} days of normal data, then {plant.test} with faults")

    watch = Watch(make(detector, **PARAMETERS.get(detector, {})), budget=BUDGET).fit(plant.train)
    say(f"Learned what is normal: {watch.detector!r} on {watch.detector.trained_on_['rows_used']:,} rows")

    alarms = watch.alarms(plant.test)
    say(str(alarms.calibration))

    labels = plant.test.labels
    assert labels is not None, "a generated plant is labelled"
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
    return Demo(plant, watch, alarms, counts, curves, adjusted, time.perf_counter() - started)


def score_rows(demo: Demo) -> list[tuple[str, float, float, float]]:
    """SPD, chance-corrected SPD and best point-adjusted F1, detectors first, then the trivial baselines on the same labels."""
    baselines = next(iter(demo.curves.values())).baselines
    rows = [(row, float(c.score), c.chance_corrected, demo.adjusted[row]) for row, c in demo.curves.items()]
    for name, score in baselines.named.items():
        rows.append(
            (f"trivial baseline: {name}", float(score), chance_corrected(float(score), baselines.best), float("nan"))
        )
    return rows


def _last(fault: Fault) -> int:
    """The last row at which an alarm has to do with the fault: its end, or the end of the window after its onset."""
    return max(fault.stop - 1, fault.start + DELTA_MAX)


def _fault_of(alarm: Alarm, faults: Sequence[Fault]) -> Fault | None:
    """The fault during which the alarm was raised."""
    return next((fault for fault in faults if fault.start <= alarm.raised <= _last(fault)), None)


def false_alarms(demo: Demo) -> list[Alarm]:
    """Alarms that were raised while nothing was wrong.

    A lasting one counts once, as it does in a budget.
    """
    return [alarm for alarm in demo.alarms if _fault_of(alarm, demo.plant.faults) is None]


def missed(demo: Demo) -> list[Fault]:
    """Faults in whose window no alarm was on."""
    return [fault for fault, hit in zip(demo.plant.faults, demo.counts.detected, strict=True) if not hit]


def key_figures(demo: Demo) -> tuple[str, ...]:
    """The answer in words: what was found and how soon, and what it cost beside the budget."""
    count, n_found = demo.counts.n_events, demo.counts.true_alarms
    false = len(false_alarms(demo))
    days = demo.counts.days_outside
    allowed = demo.counts.n_outside / demo.alarms.calibration.target
    budget = demo.alarms.calibration.budget
    budget_text = (
        f"within your budget of {budget}"
        if false <= allowed
        else f"over your budget of {budget}, which allows {allowed:.1f}"
    )
    sentences = [
        f"{n_found} of {count} faults found, {false} false alarm{'s' * (false != 1)} in {days:.1f} days without faults: {budget_text}."
    ]
    delays = demo.counts.delays[demo.counts.detected]
    if n_found:
        sentences.append(
            f"Of the faults found, half had their alarm {_after(float(np.median(delays)))}, the slowest {_after(float(delays.max()))}."
        )
    sentences += [f"Missed: {fault.kind} ({_fault_outcome(demo, fault)})." for fault in missed(demo)]
    return tuple(sentences)


def _after(minutes: float) -> str:
    return "at once" if minutes < 1 else f"after {minutes:.0f} minute{'s' * (round(minutes) != 1)}"


def _fault_outcome(demo: Demo, fault: Fault) -> str:
    """Describe the outcome of a fault: found with its delay, late or missed."""
    index = demo.plant.faults.index(fault)
    if demo.counts.detected[index]:
        before = any(a.raised < fault.start and (a.cleared or fault.stop) > fault.start for a in demo.alarms)
        delay = demo.counts.delays[index]
        return "found; an alarm was on already" if before else f"found {_after(delay)}"
    later = [alarm.raised - fault.start for alarm in demo.alarms if fault.start <= alarm.raised <= _last(fault)]
    if later:
        return f"its alarm came after {later[0]} minutes, later than the {DELTA_MAX} that count"
    return "no alarm"


def fault_rows(demo: Demo) -> list[tuple[object, ...]]:
    """One row for each fault: what, when, where, and what came of it."""
    names = demo.plant.test.channels
    return [
        (
            fault.kind,
            str(demo.plant.test.stamp(fault.start))[:16].replace("T", " "),
            ", ".join(names[c] for c in fault.channels),
            _fault_outcome(demo, fault) if hit else f"missed: {_fault_outcome(demo, fault)}",
        )
        for fault, hit in zip(demo.plant.faults, demo.counts.detected, strict=True)
    ]


def alarm_rows(demo: Demo, *, reasons: int = 2) -> list[tuple[object, ...]]:
    """One row for each alarm: when, what it was, how late, what it looks like and why, and the channels truly at fault."""
    names = demo.plant.test.channels
    rows: list[tuple[object, ...]] = []
    for alarm in demo.alarms:
        fault = _fault_of(alarm, demo.plant.faults)
        true = "" if fault is None else ", ".join(names[c] for c in fault.channels)
        found = "false alarm" if fault is None else fault.kind
        late = None if fault is None else alarm.raised - fault.start
        why = "; ".join(map(str, alarm.reasons[:reasons]))
        rows.append((str(alarm.raised_time or alarm.raised)[:16].replace("T", " "), found, late, alarm.kind, why, true))
    return rows


def _marks(demo: Demo, x: Array) -> list[Mark]:
    """Faults and false alarms as the timeline names them."""
    marks = [
        Mark(
            *span(x, fault.start, fault.stop),
            "found" if hit else "missed",
            fault.kind + ("" if hit else " (missed)"),
            "faults",
            f"{fault.kind}: {_fault_outcome(demo, fault)}",
        )
        for fault, hit in zip(demo.plant.faults, demo.counts.detected, strict=True)
    ]
    return marks + [
        Mark(*span(x, a.raised, a.cleared), "false", a.kind or "alarm", "false alarms", f"false alarm; {a.kind}: {a.why}")
        for a in false_alarms(demo)
    ]  # fmt: skip


def _timeline(demo: Demo) -> Group:
    """The timeline, the contributing channels with what was expected of them, and the evidence. Every other channel waits for its button."""
    test = demo.plant.test
    order = contributing(demo.alarms, test, test.n_channels)
    return alarm_chart(
        test,
        demo.alarms,
        demo.watch.detector.expected(test),
        channels=order,
        shown=order[:3],
        tracks=("faults", "false alarms"),
        marks=_marks(demo, time_axis(test)[0]),
        caption="Drag to zoom; a double click or the button goes back. The names above switch a channel on and off. Black line: seen. Blue: expected, with two "
        "usual spreads around it. Below: the evidence, which raises an alarm at its threshold.",
        legend=("found", "missed", "false"),
    )


def _losses(demo: Demo) -> Group | None:
    history: Sequence[dict[str, float]] = getattr(demo.watch.detector, "history_", ())
    if len(history) < 2:
        return None
    epochs = [row["epoch"] for row in history]
    lines = [
        (name, f"c{i}", epochs, [row[name] for row in history])
        for i, name in enumerate(key for key in history[0] if key != "epoch")
    ]
    caption = "Loss by epoch, on the training rows and on their tail."
    return Group(epochs, [curves("Loss", lines, height=240)], axis={"label": "epoch"}, caption=caption, switches=False)


def _score_dots(demo: Demo) -> Dots:
    baselines = next(iter(demo.curves.values())).baselines
    rows = [Dot(row, float(curve.score), baseline_score=baselines.best) for row, curve in demo.curves.items()]
    rows += [Dot(f"trivial baseline: {name}", float(score), tone="baseline") for name, score in baselines.named.items()]
    return Dots(
        "SPD of each score",
        rows,
        caption="Grey bar: what the best trivial baseline gets. What counts is the distance to it.",
    )


def demo_page(demo: Demo, *, command: str = "tisat demo") -> str:
    """The result as one self-contained HTML page: the answer, the timeline, the alarms, what the scores are worth."""
    test, detector = demo.plant.test, demo.watch.detector
    training: list[Item] = [
        f"{detector!r} learned from {detector.trained_on_['rows_used']:,} normal rows. The threshold was found on what it says of rows "
        f"it had not seen ({detector.normal_source_}).",
        *demo.alarms.calibration.words,
        *demo.alarms.calibration.notes,
    ]
    losses = _losses(demo)
    if losses is not None:
        training.append(losses)
    answer, *more = key_figures(demo)
    faults = Table(FAULT_COLUMNS, fault_rows(demo), f"A fault is found when an alarm is on within {DELTA_MAX} minutes of its beginning.")  # fmt: skip
    why = (
        "After: minutes since the fault began. Why: the value seen, the value expected and its usual spread, in the plant's units, "
        "for the two channels most contributing."
    )
    scores = score_rows(demo)
    top = max(range(len(demo.curves)), key=lambda i: scores[i][1])
    table = Table(SCORE_COLUMNS, scores, strong=(0, 1), best={(top, 1), (top, 2)}, terms=terms_of("SPD", "baseline score", "chance-corrected", "point-adjusted F1 (oracle)", "excess rule", "delta_max"), caption="In bold: what this page is about, and the best.")  # fmt: skip
    shown = [(row, f"c{i}", curve) for i, (row, curve) in enumerate(demo.curves.items())]
    sections = [
        Section("What happened", [_timeline(demo), faults]),
        Section("The alarms and their reasons", [Table(ALARM_COLUMNS, alarm_rows(demo), why)]),
        Section(
            "What the scores are worth",
            [
                _score_dots(demo),
                table,
                curve_group(
                    shown, caption="The area under a step line is its SPD. A click on a name switches its line off."
                ),
            ],
        ),
        Section("The budget and the training", training),
    ]
    lead = (
        f"A generated plant of {test.n_channels} channels, {len(test):,} minutes of test data with {demo.counts.n_events} labelled "
        f"faults; nothing is tuned to them. {demo.seconds:.0f} s in all."
    )
    steps = (
        "The same with your own file: `tisat fit week.csv --budget 1/day --out pump.tisat`, then `tisat alarm next.csv --model pump.tisat --html alarms.html`.",
        "See it live: `tisat serve --demo`, then open http://127.0.0.1:8765.",
    )
    return render_page(
        "tisat demo: a plant, its faults and its alarms",
        sections,
        lead=lead,
        answer=answer,
        more=more,
        keys=_keys(demo),
        next_steps=steps,
        command=command,
    )


def _keys(demo: Demo) -> list[Key]:
    """The figures of the answer; misses are counted apart from delays."""
    false, n_missed = len(false_alarms(demo)), len(missed(demo))
    delays = demo.counts.delays[demo.counts.detected]
    keys = [
        Key(f"{demo.counts.true_alarms} of {demo.counts.n_events}", "faults found", "found"),
        Key(f"{n_missed}", f"fault{'s' * (n_missed != 1)} missed", "missed"),
        Key(f"{false}", f"false alarm{'s' * (false != 1)} in {demo.counts.days_outside:.1f} days without faults; your budget is {demo.alarms.calibration.budget}", "alarm"),
    ]  # fmt: skip
    if len(delays):
        keys.append(Key(f"{np.median(delays):.0f} min", "from the beginning of a fault to its alarm, median of those found", "curve"))  # fmt: skip
    return keys


def demo_document(demo: Demo) -> JsonDict:
    """The result as plain values."""
    delays = demo.counts.delays[demo.counts.detected]
    return {
        "summary": list(key_figures(demo)),
        "detector": repr(demo.watch.detector),
        "budget": demo.alarms.calibration.to_json(),
        "events": demo.counts.n_events,
        "detected": demo.counts.true_alarms,
        "false_alarms": len(false_alarms(demo)),
        "days_without_faults": demo.counts.days_outside,
        "median_delay_of_detected": float(np.median(delays)) if len(delays) else None,
        "alarms": demo.alarms.to_rows(),
        "scores": [
            dict(zip(("score", "spd", "chance_corrected", "adjusted_f1_oracle"), row, strict=True))
            for row in score_rows(demo)
        ],
        "missed": [fault.kind for fault in missed(demo)],
        "seconds": float(np.round(demo.seconds, 2)),
    }
