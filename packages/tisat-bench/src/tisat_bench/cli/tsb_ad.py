"""``tisat bench tsb-ad-m`` and ``tisat bench tsb-ad-u``: detectors beside the published results of TSB-AD."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tisat.cli.output import print_json, print_table
from tisat.utils.types import JsonDict

if TYPE_CHECKING:
    from tisat.utils.types import Array
    from tisat_bench.tsb_ad import Benchmark, Comparison, FoundSeries

BENCHMARKS = ("tsb-ad-m", "tsb-ad-u")
ABOUT = "about.json"
FEW = 3  # names of missing series in a message


def _folder(store: Path, benchmark: str, name: str) -> Path:
    return store / benchmark / "".join(c if c.isalnum() or c in "-_" else "_" for c in name)


def _about(name: str) -> JsonDict:
    import tisat
    from tisat_bench.task import code_of
    from tisat_bench.tsb_ad import SCORERS

    code = "" if name in SCORERS else code_of(name)
    return {"detector": name, "tisat": tisat.__version__} | ({"code": code} if code else {})


def _own_scores(name: str, series: FoundSeries, values: Array, folder: Path) -> Array:
    """The stored scores of a detector of ours, computed where there are none of this version."""
    import numpy as np

    from tisat.persistence.model_file import write_bytes
    from tisat_bench.tsb_ad import read_scores, scores_of

    about, file = folder / ABOUT, folder / f"{series.listed.stem}.npy"
    fresh = about.is_file() and jsonlib.loads(about.read_text(encoding="utf-8")) == _about(name)
    if not fresh:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.npy"):
            old.unlink()
        write_bytes(about, jsonlib.dumps(_about(name)).encode())
    if not file.is_file():
        scores = scores_of(name, values[: series.listed.train_rows], values)
        part = file.with_suffix(".part.npy")
        np.save(part, scores)
        part.replace(file)
    return read_scores(file, rows=len(values))


def _score_folders(texts: Sequence[str]) -> dict[str, Path]:
    """``NAME=FOLDER``, or a folder that is called by its name."""
    from tisat.errors import DataFileError, ParameterError

    files = {}
    for text in texts:
        name, sign, folder = text.partition("=")
        path = Path(folder if sign else text)
        if sign and not name:
            raise ParameterError(f"The '--scores' option of tisat bench must be NAME=FOLDER. Got {text!r} instead.")
        if not path.is_dir():
            raise DataFileError(f"Folder of scores not found: {path}.")
        files[name if sign else path.resolve().name] = path
    return files


def _chosen(names: Sequence[str], benchmark: Benchmark) -> set[str]:
    """The series named by ``--series``, with or without ``.csv``."""
    from tisat.errors import ParameterError
    from tisat.utils.near_names import meant

    listed = [series.stem for series in benchmark.series]
    stems = [name.removesuffix(".csv") for name in names]
    for stem in stems:
        if stem not in listed:
            raise ParameterError(
                f"The '--series' option of tisat bench must name a series of {benchmark.title}-Eva.csv. "
                f"Got {stem!r} instead.{_begin_with(stem, listed) or meant(stem, listed)}"
            )
    return set(stems)


def _begin_with(word: str, listed: Sequence[str]) -> str:
    """The names that begin like ``word``, such as the number of a series."""
    near = [stem for stem in listed if word and stem.casefold().startswith(word.casefold())]
    return f" So begin: {_several(near)}." if near else ""


def _several(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{', '.join(names[:FEW])}{more}"


def _check_scores(folder: Path, series: Sequence[FoundSeries], *, whose: str, remedy: str) -> None:
    """Refuse a folder without a file of scores for each series."""
    from tisat.errors import DataFileError
    from tisat_bench.tsb_ad.scoring import file_of_scores

    missing = [one.listed.stem for one in series if file_of_scores(folder, one.listed.stem) is None]
    if missing:
        raise DataFileError(
            f"The folder {str(folder.resolve())!r} must hold the scores of {whose} for each series as NAME.npy, NAME.npz or NAME.csv. "
            f"{len(missing)} of {len(series)} are missing: {_several(missing)}; {remedy}, or name the series to compare on with '--series'."
        )


def compare_on(
    name: str,
    *,
    data: str | None,
    store: Path,
    only: Sequence[str],
    chosen: Sequence[str],
    scores: Sequence[str],
    run: bool,
) -> Comparison:
    """Score the series that are there, or the chosen ones, and lay the results beside the published ones."""
    from tisat.errors import DataFileError
    from tisat_bench.tsb_ad import SCORERS, compare_with_published, find_series, read_benchmark, read_scores, vus_of
    from tisat_bench.tsb_ad.detectors import check_scorer
    from tisat_bench.tsb_ad.scoring import file_of_scores

    benchmark = read_benchmark(name, data)
    stems = _chosen(chosen, benchmark)
    score_files = _score_folders(scores)
    series_found = find_series(benchmark, data)
    own = [title for title in only or SCORERS if title not in score_files]
    for title in own:
        check_scorer(title)
    if not series_found:
        raise DataFileError(
            f"The data folder must hold series of {benchmark.title}, or raw MSL, SMAP, SMD, NAB or UCR. Got none."
        )
    if stems:
        series_found = tuple(series for series in series_found if series.listed.stem in stems)
        absent = sorted(stems - {series.listed.stem for series in series_found})
        if absent:
            raise DataFileError(
                f"The data folder must hold each series of '--series'. {len(absent)} of {len(stems)} are missing: {_several(absent)}."
            )
    for title, folder in score_files.items():
        _check_scores(folder, series_found, whose=repr(title), remedy="put them there")
    for title in () if run else own:
        _check_scores(_folder(store, name, title), series_found, whose=repr(title), remedy="run without --no-run")
    results: dict[str, list[float]] = {title: [] for title in (*own, *score_files)}
    typer.echo(f"{benchmark.title}: {len(series_found)} of {len(benchmark.series)} series, store {store}", err=True)
    for number, series in enumerate(series_found, 1):
        began = time.perf_counter()
        values, labels = series.read()
        for title in own:
            rows = _own_scores(title, series, values, _folder(store, name, title))
            results[title].append(vus_of(values, labels, rows))
        for title, folder in score_files.items():
            file = file_of_scores(folder, series.listed.stem)
            assert file is not None  # checked above
            results[title].append(vus_of(values, labels, read_scores(file, rows=len(values))))
        seconds = time.perf_counter() - began
        typer.echo(
            f"{number} of {len(series_found)}: {series.listed.stem} ({series.source}), {seconds:.1f} s", err=True
        )
    return compare_with_published(benchmark, [series.listed for series in series_found], results, chosen=bool(stems))


def show(comparison: Comparison, *, report: Path | None, json: bool) -> None:
    """Print the table; write it as Markdown where asked to."""
    from tisat.persistence.model_file import write_bytes

    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
        page = f"{comparison.coverage}\n\n{comparison.markdown()}\n"
        write_bytes(report / f"{comparison.title.lower()}.md", page.encode())
        typer.echo(f"report: {report / comparison.title.lower()}.md", err=True)
    if json:
        print_json(comparison.to_dict())
        return
    columns, rows = comparison.table()
    note = (
        f"{comparison.coverage} VUS-PR of 2025, 250 thresholds, buffer by autocorrelation. * computed here; the others as published. "
        f"Intervals: 95 %, paired over series. Last column: the published mean over all listed series."
    )
    print_table(f"{comparison.title}: mean VUS-PR", columns, rows, note=note)
