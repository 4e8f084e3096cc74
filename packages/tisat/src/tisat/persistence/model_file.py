"""One file for a fitted model: a safetensors file whose header carries the JSON.

No pickle.

Layout: tensors as safetensors keeps them; in its metadata three strings, ``format`` ("tisat"), ``document`` (JSON: what
the model is, its parameters and plain state) and ``checksum`` (SHA-256 over the document and every tensor's name, type,
shape and bytes). The file appears under its name only when it is complete.

This module knows bytes, not detectors.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import numpy as np

from tisat.errors import ArtefactError
from tisat.persistence.old_names import rename_arrays, rename_keys
from tisat.utils.near_names import meant_file
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap

FORMAT = "tisat"
LEFT_BEHIND = 3600.0  # seconds after which a .part file belongs to nobody
FORMAT_VERSION = 2  # raised when an older reader would misread a newer file


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all: a temporary name in the same folder, flushed to disk, then renamed.

    A link stays one, and what it points to is replaced; a device or a pipe is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        target.write_bytes(content)
        return
    if not target.parent.is_dir():  # not by the name of a temporary file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(target.parent))
    _sweep(target)
    handle, temporary = tempfile.mkstemp(dir=target.parent or Path(), prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(target)
        _flush_folder(target.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """The umask of the process, read from the system where possible, else 022."""
    try:
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask:"))
        return int(line.split()[1], 8)
    except (OSError, StopIteration, ValueError):
        return 0o022  # asking by setting would change it for other threads


def _flush_folder(folder: Path) -> None:
    """Make a rename last through a loss of power, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _sweep(target: Path) -> None:
    """Remove what killed writers of the same file have left behind more than an hour ago."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > LEFT_BEHIND:
                left.unlink()


def _checksum(document: str, tensors: Mapping[str, AnyArray]) -> str:
    digest = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}:{array.dtype.str}:{array.shape}:".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def pack_artefact(document: JsonMap, tensors: Mapping[str, AnyArray]) -> bytes:
    """``document`` (JSON values) and ``tensors`` as the bytes of one file.

    Raises
    ------
    ArtefactError
        When the document holds something JSON cannot say exactly.
    """
    from safetensors.numpy import save

    try:
        text = json.dumps({**document, "format_version": FORMAT_VERSION}, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArtefactError(f"The model must consist of plain values and arrays to be saved. {error}.") from None
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    metadata = {"format": FORMAT, "document": text, "checksum": _checksum(text, arrays)}
    content: bytes = save(arrays, metadata=metadata)
    return content


def write_artefact(path: str | Path, document: JsonMap, tensors: Mapping[str, AnyArray]) -> None:
    """Write ``document`` (JSON values) and ``tensors`` to one file, atomically.

    Errors as :func:`pack_artefact`.
    """
    write_bytes(path, pack_artefact(document, tensors))


def read_artefact(path: str | Path) -> tuple[JsonDict, Arrays]:
    """The document and the tensors of a file written by :func:`write_artefact`.

    Raises
    ------
    ArtefactError
        When the file is missing, truncated, foreign, tampered with or written by a newer version.
    """
    file = Path(path)
    if not file.is_file():
        raise ArtefactError(
            f"File not found: {str(file)!r}. The model must be a file written by tisat fit.{meant_file(file)}"
        )
    return unpack_artefact(file.read_bytes(), where=str(file))


def unpack_artefact(content: bytes, *, where: str = "bytes") -> tuple[JsonDict, Arrays]:
    """The document and the tensors of what :func:`pack_artefact` made.

    Errors as :func:`read_artefact`.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors: Arrays = load(content)
        size = int.from_bytes(content[:8], "little")  # within the content: load has checked it
        metadata = json.loads(content[8 : 8 + size]).get("__metadata__") or {}
    except (SafetensorError, TypeError, ValueError, KeyError, AttributeError, RecursionError):
        raise ArtefactError(
            f"Not a tisat model: {where!r}. It must be a file written by tisat fit; this one is truncated or foreign."
        ) from None
    if metadata.get("format") != FORMAT:
        raise ArtefactError(f"The model file {where!r} must be written by tisat. Got a foreign safetensors file.")
    text = metadata.get("document", "")
    if metadata.get("checksum") != _checksum(text, tensors):
        raise ArtefactError(
            f"The model file {where!r} must match its checksum. Its content was changed after it was written."
        )
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    version = document.pop("format_version", None) if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(version, int) or version > FORMAT_VERSION:
        raise ArtefactError(
            f"The model file {where!r} must have format version <= {FORMAT_VERSION}. Got {version} instead: update tisat."
        )
    if version == 1:
        return cast(JsonDict, rename_keys(document)), rename_arrays(tensors)
    return document, tensors
