"""Everything in one line: the series, what was expected, the evidence and the alarms, still or to be zoomed into."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from tisat.alarms.budget import BudgetLike
from tisat.alarms.plot import draw
from tisat.errors import ParameterError
from tisat.persistence.model_file import write_bytes
from tisat.plotting.alarm_page import alarm_page
from tisat.plotting.charts import rows_drawn
from tisat.series import SeriesLike
from tisat.utils.validation import check_integer
from tisat.watch.protocols import Scorer, check_series
from tisat.watch.watch import Watch

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 4000  # of a curve at most: a notebook keeps every page it has shown
HEIGHT = 900  # pixels of the frame in a notebook


@dataclass(frozen=True, repr=False)
class Page:
    """A page that a notebook shows and that can be saved: one file, no network."""

    html: str

    def _repr_html_(self) -> str:
        # a frame without rights: its scripts run, but cannot reach the notebook
        return f'<iframe sandbox="allow-scripts" style="width:100%;height:{HEIGHT}px;border:0" srcdoc="{escape(self.html, quote=True)}"></iframe>'

    def __repr__(self) -> str:
        return f"Page({len(self.html):,} characters; save(path) writes it)"

    def save(self, path: str | Path) -> None:
        """Write the page."""
        write_bytes(path, self.html.encode())


def show_anomalies(
    model: Watch | Scorer,
    series: SeriesLike,
    *,
    budget: BudgetLike | None = None,
    channels: int = 4,
    interactive: bool = False,
) -> Figure | Page:
    """The alarms of a series in one picture: contributing channels with what was expected of them, evidence, threshold and alarms.

    Parameters
    ----------
    model : Watch or fitted Detector
        Fitted.
    series : Series, array, dataframe or file path
        Rows in the order of time.
    budget : optional
        False alarms one can accept; the watch's own unless given.
    channels : int
        How many channels are drawn at most, the most contributing first.
    interactive : bool
        A page to zoom into, which notebooks show and ``save`` writes, instead of a matplotlib figure.

    Returns
    -------
    Figure or Page
        A figure, or a page where ``interactive``.

    Examples
    --------
    >>> import numpy as np, tisat
    >>> watch = tisat.Watch("last-value", budget="1/100 rows").fit(np.random.default_rng(0).normal(size=(2000, 2)))
    >>> show_anomalies(watch, np.concatenate([np.zeros((50, 2)), np.full((5, 2), 40.0)]), interactive=True)._repr_html_()[:7]
    '<iframe'
    """
    if not isinstance(model, Watch) and not hasattr(model, "decision_function"):
        raise ParameterError.about(
            "model",
            f"must be a Watch or a fitted detector, and the series comes after it: show_anomalies(model, series). Got {type(model).__name__} instead.",
            whose="show_anomalies",
        )
    watch = model if isinstance(model, Watch) else Watch(model, budget=budget)
    if budget is not None and isinstance(model, Watch):
        watch = watch.recalibrated(budget)
    raw = watch.read(series) if isinstance(series, str | Path) else series
    checked = check_series(watch.detector, raw)
    alarms = watch.alarms(checked)
    at = rows_drawn(len(checked), most=POINTS) if interactive else None
    expected = watch.detector.expected(checked, at=at)
    if interactive:
        count = check_integer(channels, "channels", "show_anomalies", minimum=1)
        return Page(alarm_page(alarms, checked, expected=expected, channels=count, most=POINTS))
    return draw(alarms, checked, channels=channels, expected=expected)
