"""The benchmark report: self-contained HTML with tables and pictures, pages for single entities, and the tables as Markdown, LaTeX and csv.

Everything is drawn from figures and counts that were already made. No network.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from tisat.metrics.statistics import fewest_units
from tisat.persistence.model_file import write_bytes
from tisat.plotting.charts import Group
from tisat.plotting.page import Block, Item, Key, Picture, Section, Table, render_page
from tisat.plotting.phrases import terms_of
from tisat.utils.tables import Layout
from tisat_bench import plots as draw
from tisat_bench.captions import data_sentence, rule_title
from tisat_bench.entity_page import entity_page
from tisat_bench.evaluation import Results
from tisat_bench.figures import baseline_of
from tisat_bench.frozen import Frozen
from tisat_bench.tables import markdown_page, ranks_of, tables_of

SHOWN_CURVES = 6  # systems in a picture of curves: more cannot be told apart


def table_block(layout: Layout) -> Block:
    """A layout as HTML with grouped headers."""
    side = ["left" if i < layout.left else "" for i in range(len(layout.columns))]
    top = "".join(
        f'<th colspan="{n}" style="text-align:center">{html.escape(group)}</th>' for group, n in layout.groups
    )
    names = "".join(
        f'<th class="{css}">{html.escape(header)}</th>' for (_, header), css in zip(layout.columns, side, strict=True)
    )
    body = []
    for i, row in enumerate(layout.rows):
        cells = "".join(
            f'<td class="{css}{" best" * ((i, j) in layout.strong)}">{html.escape(cell)}</td>'
            for j, (cell, css) in enumerate(zip(row, side, strict=True))
        )
        line = ' style="border-top:2px solid var(--line)"' if i in layout.rules else ""
        body.append(f"<tr{line}>{cells}</tr>")
    return Block(
        f'<h3 style="margin:1.6rem 0 .2rem">{html.escape(layout.title)}</h3><div class="wide nowrap" tabindex="0" style="font-size:.85rem">'
        f"<table><thead><tr>{top}</tr><tr>{names}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        f'<p style="color:var(--soft);font-size:.85rem;margin-top:.2rem">{html.escape(layout.caption)}</p>'
    )


def systems_to_draw(frozen: Frozen, rule: str) -> list[str]:
    """The systems whose curves are drawn: the reference, the random baseline, and the strongest of the rest."""
    whole = [f for f in frozen.figures if f.rule == rule and f.entities == f.of]
    return draw.strongest(frozen, whole, SHOWN_CURVES)


def _curves(frozen: Frozen, evaluation: Results, rule: str) -> Group | None:
    delta = frozen.about["delta_max"]
    curves, baselines = {}, {}
    for dataset, everyone in evaluation.entities.items():
        lines = {}
        for name in systems_to_draw(frozen, rule):
            runs, entities = evaluation.finished(name, dataset)
            if runs and len(entities) == len(everyone):
                lines[name] = evaluation.counts(runs[0], entities, rule, delta).curve()
        if lines:
            curves[dataset] = lines
            baselines[dataset] = baseline_of(evaluation, dataset, everyone, rule, delta)[0]
    return draw.curves_group(frozen, curves, baselines) if curves else None


def _pictures(frozen: Frozen, evaluation: Results | None) -> list[Section]:
    """Pictures before tables.

    What holds for all of them is said once, in the section that comes first.
    """
    delta, rules = frozen.about["delta_max"], frozen.about["rules"]
    sections = []
    for rule in rules if frozen.figures else ():
        dots = draw.interval_dots(frozen, rule=rule, delta_max=delta)
        how = (
            "Dot: pooled SPD, the best on top. Bar in its colour: the 95 % interval over entities. Small tick: the per-entity mean. Grey bar: the best trivial baseline under the "
            f"same rule. Hollow: fewer entities. Red: {frozen.about['reference']}, which the others are compared with; blue: marked as ours; grey: the others."
        )
        if any(figure.entities < fewest_units() for figure in frozen.figures):
            how += f" Of fewer than {fewest_units()} entities there is no bar."
        sections.append(Section(f"Every system under: {rule_title(rule)}", [how, *dots] if rule == rules[0] else dots))
    pictures: list[Item] = []
    for rule in rules if frozen.entities else ():
        ranks = ranks_of(frozen, rule=rule)
        if ranks is not None:
            pictures.append(
                Picture(
                    draw.ranks_picture(ranks, reference=frozen.about["reference"]),
                    f"{rule_title(rule)}: mean rank over {ranks.blocks} entities. 1, on the right, is best; systems under one bar are not told apart (Nemenyi, 5 %).",
                )
            )
    if pictures:
        sections.append(Section("Mean ranks", pictures))
    if evaluation is not None and frozen.figures:
        items: list[Item] = []
        for rule in rules:
            group = _curves(frozen, evaluation, rule)
            if group is not None:
                items += [f"Alarm rule: {rule_title(rule)}.", group]
        if items:
            sections.append(Section("SPD curves", ["The area under a step line is the SPD of the first seed, pooled.", *items]))  # fmt: skip
    if len({f.delta_max for f in frozen.figures}) > 1:
        swept: list[Item] = ["The trivial baseline grows with delta_max, so a longer delay is no better result."]
        for rule in rules:
            swept += [f"Alarm rule: {rule_title(rule)}.", draw.sweep_group(frozen, rule=rule)]
        sections.append(Section("SPD against delta_max", swept))
    if frozen.figures:
        below = "Below the dotted line, one threshold for all entities costs more than a better model would bring."
        sections.append(Section("Pooled against mean", [below, draw.pooled_mean_group(frozen, delta_max=delta)]))
        seconds = f"Alarm rule: {rule_title(rules[-1])}; systems that have every entity. {frozen.about.get('said', {}).get('cost', '')}".strip()
        sections.append(
            Section("Cost against quality", [seconds, draw.cost_group(frozen, rule=rules[-1], delta_max=delta)])
        )
    return sections


def _answer(frozen: Frozen) -> tuple[str, list[str]]:
    """Which system has the highest SPD on each data set under the last rule, beside the best trivial baseline."""
    delta, rules = frozen.about["delta_max"], frozen.about["rules"]
    sentences = []
    for dataset in frozen.about["data"]:
        here = [f for f in frozen.figures if f.dataset == dataset and f.rule == rules[-1] and f.delta_max == delta and f.entities == f.of and f.pooled == f.pooled]  # fmt: skip
        if here:
            best = max(here, key=lambda f: f.pooled)
            below = sum(f.pooled <= f.baseline_score for f in here)
            sentences.append(
                f"{frozen.titles[dataset]}: {best.system} has the highest SPD, {100 * best.pooled:.1f} %; the best trivial baseline has {100 * best.baseline_score:.1f} %, and "
                f"{below} of {len(here)} systems are no better than it."
            )
    return (sentences[0] if sentences else ""), sentences[1:]


def _entity_pages(folder: Path, frozen: Frozen, evaluation: Results, command: str) -> Section:
    """A page for every entity, and the section that links to them."""
    (folder / "entities").mkdir(parents=True, exist_ok=True)
    systems = systems_to_draw(frozen, frozen.about["rules"][-1])
    parts = []
    for dataset, everyone in evaluation.entities.items():
        links = []
        for entity in everyone:
            page = entity_page(frozen, evaluation, dataset=dataset, entity=entity, systems=systems, command=command)
            if page is None:
                continue
            name = f"{dataset}-{entity}.html"
            write_bytes(folder / "entities" / name, page.encode())
            links.append(f'<a href="entities/{html.escape(name)}">{html.escape(entity)}</a>')
        if links:
            parts.append(Block(f"<p><b>{html.escape(frozen.titles[dataset])}</b>: {' · '.join(links)}</p>"))
    return Section(
        "Single entities",
        [
            "The series, the scores, the alarms at a threshold taken from training data, the events missed and the false alarms.",
            *parts,
        ],
    )


def report_page(
    frozen: Frozen, evaluation: Results | None = None, *, extra: Sequence[Section] = (), command: str = ""
) -> str:
    """The report as one HTML text."""
    about = frozen.about
    facts = [
        f"{data_sentence(frozen)} Made with tisat {', '.join(about['versions'])} on: "
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
    tables = tables_of(frozen)
    terms = ("SPD", "baseline score", "chance-corrected", "pooled", "interval", "alarm rule", "delta_max")
    words = Table(("term", "what it means"), list(terms_of(*terms)))
    answer, more = _answer(frozen)
    keys = [
        Key(f"{len({f.system for f in frozen.figures})}", "systems", "curve"),
        Key(f"{len(about['data'])}", f"data set{'s' * (len(about['data']) != 1)}", "curve"),
        Key(f"{about['delta_max']}", "rows: the longest delay that counts (delta_max)", "line"),
        Key(f"{len(about['failures'])}", f"task{'s' * (len(about['failures']) != 1)} failed", "alarm" if about["failures"] else "found"),
    ]  # fmt: skip
    sections = [
        *_pictures(frozen, evaluation),
        Section("The words", [words]),
        Section("Tables", [f"{len(tables)} tables; the best of a column is in bold.", *map(table_block, tables)]),
        *extra,
        Section("What this is", facts),
    ]
    return render_page(
        about["title"],
        sections,
        lead="Every figure stands beside what a trivial baseline gets on the same labels.",
        answer=answer,
        more=more,
        keys=keys if frozen.figures else (),
        command=command or about["command"],
    )


def write_report(folder: Path, frozen: Frozen, evaluation: Results | None = None, *, command: str = "") -> Path:
    """Write ``index.html``, one page for each entity, and the tables as Markdown, LaTeX and csv; returns the index.

    Parameters
    ----------
    folder : path
    frozen : Frozen
        The figures.
    evaluation : Results, optional
        The stored scores, for curves and pages of single entities; without it the report has neither.
    command : str
        What was typed, for the footer; the command that freezes the same figures unless given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    extra = []
    if evaluation is not None and frozen.figures:
        extra.append(_entity_pages(folder, frozen, evaluation, command))
    index = folder / "index.html"
    write_bytes(index, report_page(frozen, evaluation, extra=extra, command=command).encode())
    write_bytes(folder / "tables.md", markdown_page(frozen).encode())
    tables = tables_of(frozen)
    write_bytes(folder / "tables.tex", "\n".join(table.latex() for table in tables).encode())
    for number, table in enumerate(tables, start=1):
        write_bytes(folder / f"table-{number}.csv", table.csv().encode())
    return index
