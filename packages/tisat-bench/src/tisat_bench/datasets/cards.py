"""The card of a data set: where it comes from, whose it is, what is in it, and what is wrong with it.

Cards are JSON files in ``published``, so that counts and checksums are read and never typed into code. A checksum is
the git object id that the publisher's own repository gives the file, or a sha256. A card does not know how to read a
data file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from tisat.utils.types import JsonDict
from tisat.utils.validation import check_choice

NAMES = ("smd", "msl", "smap", "swat", "psm")  # in the order of the paper's tables
BLOCK = 1 << 20


@dataclass(frozen=True)
class FileCard:
    """One published file."""

    path: str  # under the data set's folder, with forward slashes
    algorithm: str  # "git" (SHA-1 over git's blob header and the content) or "sha256"
    checksum: str  # hexadecimal
    size: int | None  # bytes, where known

    def digest(self, file: Path) -> str:
        """The checksum of a local file by this card's algorithm."""
        if self.algorithm == "git":
            # Git's own object id: not a defence against an enemy, but it is what the publisher's repository states.
            digest = hashlib.sha1(f"blob {file.stat().st_size}\0".encode(), usedforsecurity=False)
        else:
            digest = hashlib.sha256()
        with file.open("rb") as opened:
            while block := opened.read(BLOCK):
                digest.update(block)
        return digest.hexdigest()


@dataclass(frozen=True)
class Origin:
    """One place files come from."""

    kind: str  # "files": each path under the address; "zip": one archive that holds them
    url: str
    strip: str  # prefix of the names inside the archive
    only: tuple[str, ...]  # the paths it serves; empty = all that no other origin serves


@dataclass(frozen=True)
class Card:
    """The metadata of a data set.

    Examples
    --------
    >>> from tisat_bench.datasets import card
    >>> smd = card("smd")
    >>> smd.channels, smd.entities, smd.events, smd.licence
    (38, 28, 327, 'MIT')
    """

    name: str  # by which it is loaded
    title: str  # for people
    folder: str  # under the data root
    description: str  # in a sentence
    source: str  # address
    paper: str  # to cite
    licence: str  # of the data
    obtain: str  # how to get it
    channels: int  # number
    period: float  # sampling period in seconds
    clock: str  # what is known of the sampling period
    train_rows: int  # of all entities
    test_rows: int  # of all entities
    entities: int  # number
    events: int  # in the test split
    anomalous_percent: float  # of the test rows
    event: str  # what counts as an event
    problems: tuple[str, ...]  # known of the data
    rows: dict[str, tuple[int | None, int | None]]  # entity -> published rows of train and test, None = not known
    files: tuple[FileCard, ...]  # with checksums
    download: tuple[Origin, ...]  # where from
    channel_names: tuple[str, ...] = ()  # where the publisher gives names

    def to_json(self) -> dict[str, object]:
        """The card as JSON can say it, without the list of files."""
        return {key: value for key, value in asdict(self).items() if key not in ("files", "download")}

    def __hash__(self) -> int:
        return hash(self.name)


def _raw(name: str) -> JsonDict:
    text = files("tisat_bench.datasets").joinpath("published", f"{name}.json").read_text(encoding="utf-8")
    document: JsonDict = json.loads(text)
    return document


def _file(entry: JsonDict) -> FileCard:
    algorithm = "git" if "git" in entry else "sha256"
    return FileCard(path=entry["path"], algorithm=algorithm, checksum=entry[algorithm], size=entry.get("bytes"))


def _origin(entry: JsonDict) -> Origin:
    return Origin(entry["kind"], entry["url"], entry.get("strip", ""), tuple(entry.get("only", ())))


@cache
def card(name: str) -> Card:
    """The card of a data set.

    Parameters
    ----------
    name : one of "smd", "msl", "smap", "swat", "psm"
        ``smd``, ``msl``, ``smap``, ``swat`` or ``psm``.

    Examples
    --------
    >>> card("smd").channels
    38
    """
    return card_of(_raw(check_choice(name, "name", "card", choices=NAMES)))


def card_of(raw: JsonDict) -> Card:
    """A card from the document that describes it."""
    return Card(
        **{
            **raw,
            "problems": tuple(raw["problems"]),
            "channel_names": tuple(raw.get("channel_names", ())),
            "rows": {entity: (train, test) for entity, (train, test) in raw["rows"].items()},
            "files": tuple(_file(entry) for entry in raw["files"]),
            "download": tuple(_origin(entry) for entry in raw["download"]),
        }
    )
