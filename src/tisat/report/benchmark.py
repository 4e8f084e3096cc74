"""The benchmark report: self-contained HTML with tables and pictures, pages for single entities, and the tables as Markdown, LaTeX and csv.

Everything is drawn from figures and counts that were already made. No network, no script.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tisat.artefact import write_bytes
from tisat.benchmark.evaluation import Evaluation
from tisat.benchmark.figures import floor_of
from tisat.benchmark.frozen import Frozen
from tisat.benchmark.layout import Layout
from tisat.benchmark.tables import TITLES, markdown_page, ranks_of, rule_title, tables_of, where_from
from tisat.report.benchmark_entity import entity_page
from tisat.report.benchmark_pictures import (
    cost_picture,
    curves_picture,
    intervals_picture,
    pooled_mean_picture,
    ranks_picture,
    sweep_picture,
)
from tisat.report.page import Block, Picture, Section, render_page

SHOWN_CURVES = 6  # systems in a picture of curves: more cannot be told apart


def table_block(layout: Layout) -> Block:
    """A layout as HTML with grouped headers."""
    spans: list[tuple[str, int]] = []
    for group, _ in layout.columns:
        if spans and group and spans[-1][0] == group:
            spans[-1] = (group, spans[-1][1] + 1)
        else:
            spans.append((group, 1))
    side = ["left" if i < layout.left else "" for i in range(len(layout.columns))]
    top = "".join(f'<th colspan="{n}" style="text-align:center">{html.escape(group)}</th>' for group, n in spans)
    names = "".join(
        f'<th class="{css}">{html.escape(header)}</th>' for (_, header), css in zip(layout.columns, side, strict=True)
    )
    body = []
    for i, row in enumerate(layout.rows):
        cells = "".join(
            f'<td class="{css}{" best" * ((i, j) in layout.strong)}" style="white-space:nowrap">{html.escape(cell)}</td>'
            for j, (cell, css) in enumerate(zip(row, side, strict=True))
        )
        line = ' style="border-top:2px solid var(--line)"' if i in layout.rules else ""
        body.append(f"<tr{line}>{cells}</tr>")
    return Block(
        f'<h3 style="margin:1.6rem 0 .2rem">{html.escape(layout.title)}</h3><div style="overflow-x:auto;font-size:.85rem">'
        f"<table><thead><tr>{top}</tr><tr>{names}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        f'<p style="color:var(--soft);font-size:.85rem;margin-top:.2rem">{html.escape(layout.caption)}</p>'
    )


def curve_systems(frozen: Frozen, rule: str) -> list[str]:
    """The systems whose curves are drawn: TiSAT, the coin, and the strongest of the rest."""
    strength: dict[str, list[float]] = {}
    for f in frozen.figures:
        if f.rule == rule and f.delta_max == frozen.about["delta_max"] and f.entities == f.of:
            strength.setdefault(f.system, []).append(f.pooled)
    fixed = [name for name in ("TiSAT", "Random Guess") if name in strength]
    rest = sorted((name for name in strength if name not in fixed), key=lambda name: -float(np.mean(strength[name])))
    return fixed + rest[: SHOWN_CURVES - len(fixed)]


def _curves(frozen: Frozen, evaluation: Evaluation, rule: str) -> Picture | None:
    delta = frozen.about["delta_max"]
    curves, floors = {}, {}
    for dataset, everyone in evaluation.entities.items():
        lines = {}
        for name in curve_systems(frozen, rule):
            runs, entities = evaluation.finished(name, dataset)
            if runs and len(entities) == len(everyone):
                lines[name] = evaluation.counts(runs[0], entities, rule, delta).curve()
        if lines:
            curves[dataset] = lines
            floors[dataset] = floor_of(evaluation, dataset, everyone, rule, delta)[0]
    if not curves:
        return None
    return Picture(
        curves_picture(curves, floors),
        f"Precision over normalised delay, pooled, first seed; alarm rule: {rule_title(rule)}; delta_max = {delta}. The area under a step line is its SPD; dotted: the best fool's SPD, as a level. {where_from(frozen)}",
    )


def _pictures(frozen: Frozen, evaluation: Evaluation | None) -> list[Section]:
    delta, rules = frozen.about["delta_max"], frozen.about["rules"]
    where = where_from(frozen)
    sections = []
    if frozen.figures:
        sections.append(
            Section(
                "Every system, with its interval",
                [
                    Picture(
                        intervals_picture(frozen, rule=rule, delta_max=delta),
                        f"Pooled SPD (dot) with its 95 % bootstrap interval over entities, and the per-entity mean (tick); hollow: fewer entities. Dotted line: the best fool under the same rule. "
                        f"Alarm rule: {rule_title(rule)}; delta_max = {delta}. Red: TiSAT; grey: other systems of the paper; blue: not in the paper. {where}",
                    )
                    for rule in rules
                ],
            )
        )
    pictures = []
    for rule in rules if frozen.entities else ():
        ranks = ranks_of(frozen, rule=rule)
        if ranks is not None:
            pictures.append(
                Picture(
                    ranks_picture(ranks),
                    f"Mean rank over {ranks.blocks} entities (1 is best, right); systems under one bar are not told apart (Nemenyi, 5 %). Alarm rule: {rule_title(rule)}. {where}",
                )
            )
    if pictures:
        sections.append(Section("Mean ranks", pictures))
    if evaluation is not None and frozen.figures:
        drawn = [picture for rule in rules if (picture := _curves(frozen, evaluation, rule)) is not None]
        if drawn:
            sections.append(Section("SPD curves", drawn))
    if len({f.delta_max for f in frozen.figures}) > 1:
        sections.append(
            Section(
                "SPD against delta_max",
                [
                    Picture(
                        sweep_picture(frozen, rule=rule),
                        f"Pooled SPD by delta_max; alarm rule: {rule_title(rule)}. The fool grows with delta_max. {where}",
                    )
                    for rule in rules
                ],
            )
        )
    if frozen.figures:
        sections.append(
            Section(
                "Pooled against mean",
                [
                    Picture(
                        pooled_mean_picture(frozen, delta_max=delta),
                        f"One point a system, data set and rule; delta_max = {delta}. Below the line, one threshold for all entities costs more than a better model would bring. {where}",
                    )
                ],
            )
        )
        sections.append(
            Section(
                "Cost against quality",
                [
                    Picture(
                        cost_picture(frozen, rule=rule, delta_max=delta),
                        f"Alarm rule: {rule_title(rule)}; delta_max = {delta}; systems that have every entity. Seconds from a busy machine: orders of magnitude. {where}",
                    )
                    for rule in rules[-1:]
                ],
            )
        )
    return sections


def _entity_pages(folder: Path, frozen: Frozen, evaluation: Evaluation) -> Section:
    """A page for every entity, and the section that links to them."""
    (folder / "entities").mkdir(parents=True, exist_ok=True)
    systems = curve_systems(frozen, frozen.about["rules"][-1])
    parts = []
    for dataset, everyone in evaluation.entities.items():
        links = []
        for entity in everyone:
            page = entity_page(frozen, evaluation, dataset=dataset, entity=entity, systems=systems)
            if page is None:
                continue
            name = f"{dataset}-{entity}.html"
            write_bytes(folder / "entities" / name, page.encode())
            links.append(f'<a href="entities/{html.escape(name)}">{html.escape(entity)}</a>')
        if links:
            parts.append(Block(f"<p><b>{html.escape(TITLES[dataset])}</b>: {' · '.join(links)}</p>"))
    return Section(
        "Single entities",
        [
            "The series, the scores, the alarms at a threshold taken from training data, the events missed and the false alarms.",
            *parts,
        ],
    )


def report_page(
    frozen: Frozen, evaluation: Evaluation | None = None, *, extra: Sequence[Section] = (), command: str = ""
) -> str:
    """The report as one HTML text."""
    about = frozen.about
    facts = [
        f"{where_from(frozen)} Made with tisat {', '.join(about['versions'])} on: "
        + "; ".join(
            f"{m.get('processor', '?')}, {m.get('cores', '?')} cores, Python {m.get('python', '?')}"
            for m in about["machines"]
        )
        + "."
    ]
    if about["note"]:
        facts.append(about["note"])
    if about["not_run"]:
        facts.append("Not run: " + "; ".join(about["not_run"]) + ".")
    if about["failures"]:
        facts.append("Failed: " + "; ".join(about["failures"]) + ".")
    sections = [
        Section("What this is", facts),
        Section("Tables", [table_block(table) for table in tables_of(frozen)]),
        *_pictures(frozen, evaluation),
        *extra,
    ]
    return render_page(
        about["title"],
        sections,
        lead="Every figure beside what a fool gets on the same labels.",
        command=command or about["command"],
    )


def write_report(
    folder: Path, frozen: Frozen, evaluation: Evaluation | None = None, *, entities: bool = True, command: str = ""
) -> Path:
    """Write ``index.html``, one page an entity, and the tables as Markdown, LaTeX and csv; returns the index.

    Parameters
    ----------
    folder : path
    frozen : Frozen
        The figures.
    evaluation : Evaluation, optional
        The stored scores, for curves and pages of single entities; without it the report has neither.
    entities : bool
        Whether to write the pages of single entities.
    command : str
        What was typed, for the footer; the command that freezes the same figures unless given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    extra = []
    if evaluation is not None and entities and frozen.figures:
        extra.append(_entity_pages(folder, frozen, evaluation))
    index = folder / "index.html"
    write_bytes(index, report_page(frozen, evaluation, extra=extra, command=command).encode())
    write_bytes(folder / "tables.md", markdown_page(frozen).encode())
    tables = tables_of(frozen)
    write_bytes(folder / "tables.tex", "\n".join(table.latex() for table in tables).encode())
    for number, table in enumerate(tables, start=1):
        write_bytes(folder / f"table-{number}.csv", table.csv().encode())
    return index
