"""One file for a fitted model: a safetensors file whose header carries the JSON. No pickle.

Layout: tensors as safetensors keeps them; in its metadata three strings, ``format`` ("tisat"), ``document`` (JSON: what
the model is, its parameters and plain state) and ``checksum`` (SHA-256 over the document and every tensor's name, type,
shape and bytes). The file appears under its name only when it is complete.

This module knows bytes, not detectors.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tisat.errors import ArtefactError

FORMAT = "tisat"
FORMAT_VERSION = 1  # raised when an older reader would misread a newer file


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all: a temporary name in the same folder, flushed to disk, then renamed."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent or Path(), prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _checksum(document: str, tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name}:{array.dtype.str}:{array.shape}:".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_artefact(path: str | Path, document: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write ``document`` (JSON values) and ``tensors`` to one file, atomically.

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
    write_bytes(path, save(arrays, metadata=metadata))


def read_artefact(path: str | Path) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The document and the tensors of a file written by :func:`write_artefact`.

    Raises
    ------
    ArtefactError
        When the file is missing, truncated, foreign, tampered with or written by a newer version.
    """
    from safetensors import SafetensorError, safe_open

    file = Path(path)
    if not file.is_file():
        raise ArtefactError(f"The model file {str(file)!r} must exist. There is no such file.")
    try:
        with safe_open(file, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ArtefactError(
                    f"The model file {str(file)!r} must be written by tisat. Got a foreign safetensors file."
                )
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        if isinstance(error, ArtefactError):
            raise
        raise ArtefactError(
            f"The model file {str(file)!r} must be a whole tisat file. Got a truncated or foreign one ({error})."
        ) from None
    text = metadata.get("document", "")
    if metadata.get("checksum") != _checksum(text, tensors):
        raise ArtefactError(
            f"The model file {str(file)!r} must match its checksum. Its content was changed after it was written."
        )
    document: dict[str, Any] = json.loads(text)
    version = document.pop("format_version", None)
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ArtefactError(
            f"The model file {str(file)!r} must have format version <= {FORMAT_VERSION}. Got {version} instead: update tisat."
        )
    return document, tensors
