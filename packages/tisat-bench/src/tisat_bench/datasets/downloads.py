"""Fetch a data set from its publisher: resumed where it broke off, checked, put in place whole, the manifest last.

A file arrives as ``<name>.part``; what is there is continued with an HTTP range request, and it is renamed only when its
checksum is the card's. ``.tisat-<name>.json`` in the data set's folder is written when everything is there. Only the
standard library is used (see docs/decisions). This module does not know how to read the files.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

from tisat import __version__
from tisat.errors import DataFileError
from tisat.persistence.model_file import write_bytes
from tisat.utils.progress import Bar, progress
from tisat.utils.validation import check_choice, check_integer, check_real
from tisat_bench.datasets.cards import NAMES, Card, FileCard, Origin
from tisat_bench.datasets.cards import card as read_card
from tisat_bench.datasets.loading import data_root

BLOCK = 1 << 16
TIMEOUT = 30.0  # seconds without a byte
LARGEST = 4 << 30  # bytes of a download or of a member of an archive whose size is not published
SCHEMES = ("https://", "http://")


def _request(url: str, offset: int) -> Any:
    import urllib.request  # a tenth of a second, so not at import

    if not url.startswith(SCHEMES):
        raise DataFileError(f"The address of a data set must begin with https:// or http://. Got {url!r} instead.")
    headers = {"User-Agent": f"tisat/{__version__}", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)  # noqa: S310


def _too_large(part: Path, what: str, limit: int) -> DataFileError:
    """Throw away what came, and say so."""
    part.unlink(missing_ok=True)
    return DataFileError(f"{what} must be at most {limit:,} bytes large. More came; it was thrown away.")


def _receive(url: str, part: Path, bar: Bar, *, limit: int = LARGEST) -> None:
    """One attempt: append to what is there where the server allows, else begin again.

    Raises OSError if it breaks off.
    """
    from urllib.error import HTTPError

    offset = part.stat().st_size if part.is_file() else 0
    try:
        response = _request(url, offset)
    except HTTPError as error:
        if error.code != 416:  # 416: nothing beyond what we have, the checksum will tell
            raise
        error.close()
        return
    with response:
        resumed = response.status == 206 and str(response.headers.get("Content-Range", "")).startswith(
            f"bytes {offset}-"
        )
        expected = response.headers.get("Content-Length")
        received = 0
        before = offset if resumed else 0
        with part.open("ab" if resumed else "wb") as opened:
            while block := response.read(BLOCK):
                received += len(block)
                if before + received > limit:
                    raise _too_large(part, f"The file at {url}", limit)
                opened.write(block)
                bar.advance(len(block), note=part.name.removesuffix(".part"))
    if expected is not None and received < int(expected):
        raise OSError(f"the transfer broke off after {received} of {expected} bytes")


def fetch(url: str, target: Path, *, published: FileCard | None, attempts: int, pause: float, bar: Bar) -> None:
    """Bring one file into place, or say why not.

    A wrong checksum gets one fresh start, since the part may be left over from another version; then it is an error and
    nothing is left behind that could be taken for the file, nor a folder in which nothing is.
    """
    part = target.with_name(f"{target.name}.part")
    new_folders = [folder for folder in (part.parent, *part.parent.parents) if not folder.exists()]
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        _fetch(url, target, part, published=published, attempts=attempts, pause=pause, bar=bar)
    except BaseException:
        if part.is_file() and not part.stat().st_size:
            part.unlink()
        with contextlib.suppress(OSError):  # not empty: something has arrived, and will be continued
            for folder in new_folders:
                folder.rmdir()
        raise


def _fetch(
    url: str, target: Path, part: Path, *, published: FileCard | None, attempts: int, pause: float, bar: Bar
) -> None:
    from urllib.error import HTTPError

    fresh_starts = 1 if part.is_file() else 0
    attempt = 0
    while True:
        attempt += 1
        try:
            limit = LARGEST if published is None or published.size is None else published.size
            _receive(url, part, bar, limit=limit)
        except DataFileError:
            if fresh_starts == 0:
                raise
            fresh_starts -= 1  # too large: what was there may have been left over from another version
            continue
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            why = (
                f"The transfer of {url} must reach its end. It broke off {attempt} times, last with {str(reason)!r}; "
                f"what has arrived is kept and will be continued."
            )
            if isinstance(error, HTTPError):
                error.close()
                why = f"The address {url} must give the file {target.name!r}. It answered {error.code} {reason}."
            if attempt >= attempts or (isinstance(error, HTTPError) and error.code < 500):
                raise DataFileError(why) from None
            time.sleep(pause * attempt)
            continue
        digest = None if published is None else published.digest(part)
        if published is None or digest == published.checksum:
            os.replace(part, target)
            return
        part.unlink()
        if fresh_starts == 0:
            raise DataFileError(
                f"The file {target.name!r} from {url} must have the {published.algorithm} checksum {published.checksum}. "
                f"Got {digest} instead; it was thrown away."
            )
        fresh_starts -= 1


def _unpack(archive: Path, origin: Origin, folder: Path, wanted: list[FileCard]) -> None:
    """The wanted members of a zip, each checked and renamed into place."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = set(opened.namelist())
            for published in wanted:
                member = origin.strip + published.path
                if member not in members:
                    raise DataFileError(f"The archive {origin.url} must hold {member!r}. It does not.")
                target = folder / published.path
                target.parent.mkdir(parents=True, exist_ok=True)
                part = target.with_name(f"{target.name}.part")
                limit = LARGEST if published.size is None else published.size
                with opened.open(member) as source, part.open("wb") as sink:
                    while block := source.read(BLOCK):
                        if sink.tell() + len(block) > limit:
                            raise _too_large(part, f"The member {member!r} of {origin.url}", limit)
                        sink.write(block)
                digest = published.digest(part)
                if digest != published.checksum:
                    part.unlink()
                    raise DataFileError(
                        f"The member {member!r} of {origin.url} must have the {published.algorithm} checksum "
                        f"{published.checksum}. Got {digest} instead."
                    )
                os.replace(part, target)
    except zipfile.BadZipFile as error:
        archive.unlink()
        raise DataFileError(
            f"The archive {origin.url} must be a zip file. Got {str(error)!r}; it was thrown away."
        ) from None


def _is_complete(folder: Path, published: FileCard) -> bool:
    file = folder / published.path
    return file.is_file() and published.digest(file) == published.checksum


def _files_by_origin(card: Card) -> Iterator[tuple[Origin, list[FileCard]]]:
    """Each origin with the files it serves."""
    named = {path for origin in card.download for path in origin.only}
    for origin in card.download:
        files = [file for file in card.files if (file.path in origin.only if origin.only else file.path not in named)]
        yield origin, files


@contextmanager
def _bar(card: Card, missing: list[FileCard]) -> Iterator[Bar]:
    sizes = [file.size for file in missing]
    known = [size for size in sizes if size is not None]
    # Files whose size is not on the card are taken to be as large as the average of the others.
    total = sum(known) / len(known) * len(sizes) if known else None
    with progress(f"downloading {card.name}", total=total) as bar:
        yield bar


def fetch_set(card: Card, folder: Path, *, attempts: int, pause: float, url: str | None = None) -> None:
    """Bring every file of a card into its folder, then write the manifest.

    What is there and right is left alone.
    """
    missing = [file for file in card.files if not _is_complete(folder, file)]
    with _bar(card, missing) as bar:
        for origin, files in _files_by_origin(card):
            to_fetch = [file for file in files if file in missing]
            if not to_fetch:
                continue
            base = origin.url if url is None else url.rstrip("/") + "/"
            if origin.kind == "files":
                for file in to_fetch:
                    target = folder / file.path
                    fetch(base + file.path, target, published=file, attempts=attempts, pause=pause, bar=bar)
            else:
                archive = folder / "data.zip"
                address = origin.url if url is None else base + "data.zip"
                fetch(address, archive, published=None, attempts=attempts, pause=pause, bar=bar)
                _unpack(archive, origin, folder, to_fetch)
                archive.unlink()
    manifest = {"name": card.name, "tisat": __version__, "source": url or card.source}
    target = folder / f".tisat-{card.name}.json"
    paths = [file.path for file in card.files]
    write_bytes(target, (json.dumps(manifest | {"files": paths}, indent=1) + "\n").encode())


def download(
    name: str, data: str | Path | None = None, *, attempts: int = 5, pause: float = 1.0, url: str | None = None
) -> Path:
    """Fetch a data set from its publisher into the cache.

    What is already there and right is left alone.

    Parameters
    ----------
    name : one of "smd", "msl", "smap", "psm"
        SWaT is given out on request only: for it the error says how to ask.
    data : folder, optional
        The data root to write under, as for :func:`tisat_bench.datasets.load`.
    attempts : int >= 1
        How often a broken transfer is continued before giving up; what has arrived is kept.
    pause : float
        Seconds before the second attempt, twice as many before the third, and so on.
    url : str, optional
        A mirror that serves the same layout, in place of the publisher.

    Returns
    -------
    folder : Path

    Examples
    --------
    >>> download("smd")  # doctest: +SKIP
    """
    card = read_card(check_choice(name, "name", "download", choices=NAMES))
    attempts = check_integer(attempts, "attempts", "download", minimum=1)
    pause = check_real(pause, "pause", "download", at_least=0)
    if not card.download:
        raise DataFileError(f"The data set {name!r} cannot be downloaded. {card.obtain}")
    folder = data_root(data) / card.folder
    try:
        fetch_set(card, folder, attempts=attempts, pause=pause, url=url)
    except DataFileError as error:
        same = url is None and f"tisat data download {name}" in card.obtain  # the command that has just failed
        raise DataFileError(str(error) if same else f"{error} Another way to get {name}: {card.obtain}") from None
    return folder
