"""Which detectors are worth a try on a series, and why: rules of thumb over what can be measured, each with its figure.

The rules follow the table of what each detector sees (docs/detectors/README.md) and what each needs. Nothing is fitted here, and nothing is
promised: which one is best on your plant is found out with labelled faults and ``tisat bench``, or by living with the alarms.
"""

from __future__ import annotations

import ast
import shlex
from dataclasses import asdict, dataclass
from importlib.util import find_spec

import numpy as np

from tisat.datasets.profile import Look, look
from tisat.datasets.sizes import FEW_ROWS, FOR_FEW, repeated_notes, size_notes, too_few
from tisat.gap_filling import carry_forward
from tisat.io.durations import spelt
from tisat.series import Series, SeriesLike, as_series
from tisat.utils.html import table
from tisat.utils.types import Array, JsonDict, Params

MANY_ROWS = 20_000
TIED = 0.7  # correlation of two channels, row by row
SMOOTH = 0.5  # share of a channel's variance that is gone in its steps
RHYTHM = 0.5  # autocorrelation at the best lag, of what is left without the short memory
LOOKED_AT = 20_000  # rows


@dataclass(frozen=True)
class Suggestion:
    """One detector worth a try."""

    detector: str  # a registered name, or several with +, for tisat.combine
    why: str
    beware: str = ""
    settings: str = ""  # of --set

    @property
    def parameters(self) -> Params:
        """The settings as values."""
        name, _, value = self.settings.partition("=")
        return {name: ast.literal_eval(value)} if name else {}

    @property
    def command(self) -> str:
        """The command that fits it."""
        more = f" --set {shlex.quote(self.settings)}" if self.settings else ""
        return f"tisat fit --detector {self.detector}{more} --train FILE --out model.tisat"


@dataclass(frozen=True)
class Suggestions:
    """Facts about a series and detectors to try, the best first; ``print`` it."""

    facts: tuple[str, ...]
    detectors: tuple[Suggestion, ...]

    def __str__(self) -> str:
        lines = [
            *(f"* {fact}" for fact in self.facts),
            *(["", "Worth trying, in this order:"] if self.detectors else []),
        ]
        for number, one in enumerate(self.detectors, 1):
            lines.append(f"{number}. {one.detector}{' (' + one.settings + ')' if one.settings else ''}: {one.why}")
            lines += [f"   beware: {one.beware}"] if one.beware else []
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(one.detector, one.settings, one.why, one.beware) for one in self.detectors]
        return table("Worth trying", ("detector", "settings", "why", "beware"), rows, note=" ".join(self.facts))

    def to_json(self) -> JsonDict:
        """Plain values."""
        return {
            "facts": list(self.facts),
            "detectors": [{**asdict(one), "command": one.command} for one in self.detectors],
        }


@dataclass(frozen=True)
class _Traits:
    """Features of a series that the suggestions depend on."""

    look: Look
    tied: float  # the strongest correlation of two channels
    pair: tuple[str, str]
    smooth: float  # the median over measurements
    rhythm: float  # the strongest autocorrelation at a lag, and the lag
    lag: int

    def count(self, *kinds: str) -> int:
        return sum(one.kind in kinds for one in self.look.channels)


def _traits(series: Series) -> _Traits:
    profile = look(series)
    values = carry_forward(np.asarray(series.values[-LOOKED_AT:], dtype=np.float64))
    moving = [c for c, one in enumerate(profile.channels) if one.kind in ("measurement", "stuck")]
    tied, pair, smooth, rhythm, lag = 0.0, ("", ""), [], 0.0, 0
    clean = values[~np.isnan(values[:, moving]).any(axis=1)][:, moving] if moving else np.empty((0, 0))
    if len(clean) > 20:
        spread = clean.std(axis=0)
        alive = spread > 0
        if alive.sum() >= 2:
            matrix = np.abs(np.corrcoef(clean[:, alive], rowvar=False))
            np.fill_diagonal(matrix, 0.0)
            i, j = np.unravel_index(int(np.argmax(matrix)), matrix.shape)
            names = [series.channels[c] for c, good in zip(moving, alive, strict=True) if good]
            tied, pair = float(matrix[i, j]), (names[int(i)], names[int(j)])
        for c in np.flatnonzero(alive):
            column = clean[:, c]
            smooth.append(1.0 - float(np.diff(column).var() / (2 * column.var())))
            strength, where = _rhythm(column)
            if strength > rhythm:
                rhythm, lag = strength, where
    return _Traits(profile, tied, pair, float(np.median(smooth)) if smooth else 0.0, rhythm, lag)


def _rhythm(column: Array) -> tuple[float, int]:
    """The highest peak of the autocorrelation behind its first dip, and its lag.

    0 where it never dips.
    """
    centred = column - column.mean()
    size = 2 ** int(np.ceil(np.log2(2 * len(centred))))
    spectrum = np.abs(np.fft.rfft(centred, size)) ** 2
    correlation = np.fft.irfft(spectrum, size)[: len(centred) // 2]
    if correlation[0] <= 0:
        return 0.0, 0
    correlation = correlation / correlation[0] * len(centred) / (len(centred) - np.arange(len(correlation)))
    below = np.flatnonzero(correlation < 0.2)
    if not len(below) or correlation[below[0] :].max() <= 0:
        return 0.0, 0
    start = int(below[0])
    # Its multiples are as high: the first counts.
    high = np.flatnonzero(correlation[start:] >= 0.9 * correlation[start:].max())
    ends = np.flatnonzero(np.diff(high) > 1)
    hill = start + high[: int(ends[0]) + 1 if len(ends) else len(high)]
    best = int(hill[np.argmax(correlation[hill])])
    return float(correlation[best]), best


def _facts(one: _Traits) -> list[str]:
    profile = one.look
    clock = "no clock, so budgets are in rows" if profile.period is None else f"a row every {spelt(profile.period)}"
    facts = [
        f"{profile.rows:,} rows of {len(profile.channels)} channel{'s' * (len(profile.channels) != 1)}, {clock}.",
        *size_notes(profile.rows, len(profile.channels)),
        *repeated_notes(profile.duplicated_rows, profile.rows),
    ]
    lacking = [channel for channel in profile.channels if channel.missing > 0.01]
    if lacking:
        facts.append(
            f"{len(lacking)} channels lack more than 1 % of their values, most of all {max(lacking, key=lambda c: c.missing).name}."
        )
    for kind, words in (
        ("counter", "only grow: tisat fit looks at their growth per row (--counter, --no-counter)"),
        ("empty", "are empty: leave them out"),
    ):
        named = [channel.name for channel in profile.channels if channel.kind == kind]
        if named:
            facts.append(f"These {words}: {', '.join(named[:5])}.")
    states = one.count("on/off", "states")
    if states:
        facts.append(f"{states} channel{' is a switch or state' if states == 1 else 's are switches or states'}.")
    if one.tied >= TIED:
        facts.append(f"{one.pair[0]} and {one.pair[1]} move together (correlation {one.tied:.2f}).")
    if one.rhythm >= RHYTHM:
        every = f"{one.lag} rows" if profile.period is None else spelt(one.lag * profile.period, digits=2)
        facts.append(f"There is a rhythm of about {every} (autocorrelation {one.rhythm:.2f}).")
    if profile.events:
        facts.append(f"It has {profile.events} labelled events: detectors must be fitted on rows without them.")
    return facts


def suggest(data: SeriesLike) -> Suggestions:
    """Look at normal data and say which detectors are worth a try, and why.

    Parameters
    ----------
    data : Series, array, dataframe or file path
        A series, an array, a table or a file.

    Returns
    -------
    Suggestions
        Detectors worth a try, with reasons; none where there are too few rows for any.

    Examples
    --------
    >>> from tisat.datasets.synthetic import make_pump
    >>> found = suggest(make_pump().train)
    >>> [one.detector for one in found.detectors]
    ['prism', 'mahalanobis', 'linear-last', 'combine']
    >>> print(found.detectors[0].command)
    tisat fit --detector prism --train FILE --out model.tisat
    """
    traits = _traits(as_series(data, whose="suggest"))
    profile, channels = traits.look, len(traits.look.channels)
    if too_few(profile.rows):
        return Suggestions(tuple(_facts(traits)), ())
    gappy = any(one.missing > 0.01 for one in profile.channels)
    listed: list[Suggestion] = []
    if profile.rows < FEW_ROWS:
        listed.append(Suggestion(FOR_FEW, f"{profile.rows} rows are few: it has one number to learn and sees jumps and spikes", f"{FEW_ROWS} rows would let prism see more"))  # fmt: skip
        listed.append(
            Suggestion("mahalanobis", "the cheapest that sees channels that no longer fit together", "", "window=1")
        )
    else:
        gaps = " and goes on when a sensor is silent" if gappy else ""
        listed.append(
            Suggestion("prism", f"the default: it looks in six ways at once, gives reasons in your units{gaps}")
        )
    if channels > 1 and traits.tied >= TIED and profile.rows >= FEW_ROWS:
        listed.append(Suggestion("mahalanobis", f"{traits.pair[0]} and {traits.pair[1]} are tied ({traits.tied:.2f}): it sees when ties break, row by row"))  # fmt: skip
    if traits.smooth >= SMOOTH and profile.rows >= FEW_ROWS:
        listed.append(Suggestion("linear-last", f"steps are small beside levels ({traits.smooth:.0%} of the variance is slow): a forecast of the next row is sharp", "blind to slow drifts and stuck sensors"))  # fmt: skip
    if channels == 1 and traits.rhythm >= RHYTHM and profile.rows >= 4 * traits.lag:
        listed.append(Suggestion("matrix-profile", f"one channel with a rhythm of {traits.lag} rows: it looks for shapes never seen", "meant for single channels", f"window={max(8, min(traits.lag, 200))}"))  # fmt: skip
    if traits.count("on/off", "states") * 2 > channels:
        listed.append(Suggestion("nearest-neighbors", "most channels are states: it looks for combinations never seen", "needs all combinations in training"))  # fmt: skip
    if len(listed) > 1 and not gappy and profile.rows >= FEW_ROWS:
        others = ",".join(repr(one.detector) for one in listed[:2])
        listed.append(Suggestion("combine", f"{listed[0].detector} and {listed[1].detector} see different faults: together they see both", "and both of their false alarms: the budget raises the threshold for it", f"members=({others})"))  # fmt: skip
    if profile.rows >= MANY_ROWS and find_spec("torch") is not None:
        listed.append(Suggestion("tisat", f"{profile.rows:,} rows are enough for a network", "minutes to hours to fit; on public data it did not beat the simple ones"))  # fmt: skip
    return Suggestions(tuple(_facts(traits)), tuple(listed))
