"""Compare a folder with a data set's card: what is missing, what differs, and what that does to published row counts.

It reports and never repairs; it does not download.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tisat.errors import InputError
from tisat.events import events_from_labels
from tisat.utils.progress import progress
from tisat.utils.validation import check_choice, check_flag
from tisat_bench.datasets import loading, swat
from tisat_bench.datasets.cards import NAMES, Card
from tisat_bench.datasets.cards import card as read_card


@dataclass(frozen=True)
class Finding:
    """One thing that is not as published.

    Examples
    --------
    >>> from tisat_bench.datasets import verify
    >>> verify("smd").findings  # doctest: +SKIP
    ()
    """

    path: str  # file, or the data set's name
    problem: str  # "missing", "different", "unreadable" or "count"
    what: str  # one sentence


@dataclass(frozen=True)
class Verification:
    """The result of :func:`verify`.

    Examples
    --------
    >>> from tisat_bench.datasets import verify
    >>> verify("smd").complete  # doctest: +SKIP
    True
    """

    name: str  # data set
    folder: Path  # that was looked at
    checked: int  # files compared with a checksum
    entities: int  # with values
    train_rows: int  # of the entities with values
    test_rows: int  # of the entities with values
    events: int  # in all labels that are there
    findings: tuple[Finding, ...]  # what is missing or differs

    @property
    def complete(self) -> bool:
        """Whether nothing is missing and nothing differs."""
        return not self.findings

    def summary(self, card: Card) -> str:
        """Compare the folder with the published counts, in one or two sentences."""
        if not self.entities:
            return f"No entity of {self.name} has its values here; labels hold {self.events} events."
        counts = (
            f"{self.entities} of {card.entities} entities have values: {self.train_rows:,} train and "
            f"{self.test_rows:,} test rows; published are {card.train_rows:,} and {card.test_rows:,}."
        )
        short = self.test_rows != card.test_rows or self.entities != card.entities
        return counts + (
            " A figure computed here is not comparable with one on the whole set: name the entities." if short else ""
        )


def _check_files(folder: Path, card: Card) -> tuple[int, list[Finding]]:
    findings = []
    checked = 0
    with progress(f"checking {card.name}", total=len(card.files)) as bar:
        for published in card.files:
            file = folder / published.path
            if not file.is_file():
                findings.append(Finding(published.path, "missing", "The file is not there."))
            elif published.size is not None and file.stat().st_size != published.size:
                problem = f"It must have {published.size:,} bytes. Got {file.stat().st_size:,} instead."
                findings.append(Finding(published.path, "different", problem))
            else:
                checked += 1
                found = published.digest(file)
                if found != published.checksum:
                    problem = f"Its {published.algorithm} checksum must be {published.checksum}. Got {found} instead."
                    findings.append(Finding(published.path, "different", problem))
            bar.advance(note=published.path)
    return checked, findings


def _check_labels(card: Card, root: Path) -> tuple[int, list[Finding]]:
    try:
        labels = loading.labels(card.name, root)
    except InputError as error:
        return 0, [Finding(card.name, "unreadable", str(error))]
    events = sum(len(events_from_labels(y)) for y in labels.values())
    rows = sum(len(y) for y in labels.values())
    findings = []
    if events != card.events or rows != card.test_rows:
        problem = (
            f"The labels must hold {card.events} events in {card.test_rows:,} rows. "
            f"Got {events} in {rows:,} instead: point-adjusted scores and SPD will not match published ones."
        )
        findings.append(Finding(card.name, "count", problem))
    return events, findings


def _check_values(card: Card, root: Path) -> tuple[int, int, int, list[Finding]]:
    """Entities, train rows and test rows that can be read whole."""
    findings: list[Finding] = []
    entities = train_rows = test_rows = 0
    try:
        dataset = loading.published(card, root, telemetry_only=False, version=None, strict=False)
    except InputError as error:
        return 0, 0, 0, [*findings, Finding(card.name, "unreadable", str(error))]
    if not dataset.entities:
        problem = f"No entity has both its train and its test values here. To get them: {card.obtain}"
        return 0, 0, 0, [*findings, Finding(card.name, "missing", problem)]
    if not card.files:  # where the card lists files, each absent one has its finding already
        findings += [Finding(name, "missing", "The entity has no values here.") for name in dataset.missing]
    with progress(f"reading {card.name}", total=len(dataset)) as bar:
        for entity in dataset:
            try:
                train, test = len(entity.train), len(entity.test)
            except InputError as error:
                findings.append(Finding(entity.name, "unreadable", str(error)))
                continue
            finally:
                bar.advance(note=entity.name)
            entities += 1
            train_rows += train
            test_rows += test
            key = f"normal {swat.newest(root / card.folder)}" if card.name == "swat" else entity.name
            published_train = card.rows.get(key, (None, None))[0]
            published_test = card.rows.get(entity.name, (None, None))[1]
            for split, rows, published in (("train", train, published_train), ("test", test, published_test)):
                if published is not None and rows != published:
                    problem = f"Its {split} split must have {published:,} rows as published. Got {rows:,} instead."
                    findings.append(Finding(entity.name, "count", problem))
    return entities, train_rows, test_rows, findings


def verify(name: str, data: str | Path | None = None, *, values: bool = True) -> Verification:
    """Compare a folder with the card: every checksum, the labels, and (unless told not to) every row.

    Parameters
    ----------
    name : one of "smd", "msl", "smap", "swat", "psm"
        A data set.
    data : folder, optional
        As for :func:`tisat_bench.datasets.load`.
    values : bool
        Read every series too, and count its rows.

    Returns
    -------
    verification : Verification
        ``findings`` is empty where everything is as published.

    Examples
    --------
    >>> verify("smd").complete  # doctest: +SKIP
    True
    """
    card = read_card(check_choice(name, "name", "verify", choices=NAMES))
    values = check_flag(values, "values", "verify")
    root = loading.data_root(data)
    folder = root / card.folder
    if not folder.is_dir():
        finding = Finding(card.folder, "missing", f"There is no folder {str(folder)!r}. To get it: {card.obtain}")
        return Verification(name, folder, 0, 0, 0, 0, 0, (finding,))
    checked, findings = _check_files(folder, card)
    events, more = _check_labels(card, root)
    findings += more
    entities = train_rows = test_rows = 0
    if values:
        entities, train_rows, test_rows, more = _check_values(card, root)
        findings += more
    return Verification(name, folder, checked, entities, train_rows, test_rows, events, tuple(findings))
