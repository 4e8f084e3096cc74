"""A backtest as one page that can be mailed: alarms per step with reasons, and a what-if over budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tisat.alarms.tally import say_moment
from tisat.plotting.page import Dot, Dots, Key, Section, Table, render_page

if TYPE_CHECKING:
    from tisat.watch.walk_forward import Backtest


def backtest_page(found: Backtest, *, command: str = "") -> str:
    """The page as text."""
    columns, rows = found.table()
    most = max([1, *(len(step.alarms) for step in found.steps), *(step.allowed for step in found.steps)])
    dots = [
        Dot(str(row[0]), float(len(step.alarms)), baseline_score=float(step.allowed))
        for row, step in zip(rows, found.steps, strict=False)
    ]
    over = [[budget, count, f"{count / len(found.steps):.1f}"] for budget, count in found.counts.items()]
    listed = [
        [say_moment(one.raised, one.raised_time), say_moment(one.onset, one.onset_time), one.until, one.kind, one.why]
        for one in found.alarms
    ]
    sections = [
        Section(
            "Alarms, step by step",
            [
                Dots(
                    "alarms",
                    dots,
                    top=float(most),
                    caption="Dots: alarms. Bars: what the budget allows.",
                    shown="{:.3g}",
                    bar="the budget allows",
                ),
                Table(columns, rows, strong=[len(rows) - 1]),
            ],
        ),
        Section(
            "What if the budget were another",
            [Table(["budget", "alarms", "per step"], over, caption="The same models, each with another threshold.")],
        ),
        Section(
            "The alarms and their reasons",
            [Table(["raised", "since", "until", "what", "why"], listed)],
            folded=len(listed) > 20,
        ),
    ]
    return render_page(
        f"Backtest of {found.name or 'a series'}",
        sections,
        answer=found.answer,
        keys=[
            Key(str(len(found.alarms)), "alarms would have been raised", "alarm"),
            Key(found.budget, "false alarms you said you accept"),
            Key(str(len(found.steps)), "models, each fitted on the rows before its step"),
        ],
        next_steps=["Too many alarms, or too few: take the budget of the table above with `tisat fit --budget`."],
        command=command,
    )
