"""Prometheus remote write 1.0: snappy-packed protobuf in, samples out."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tisat.errors import InputError
from tisat.utils.extras import require
from tisat_serve.sources.samples import Sample, Samples
from tisat_serve.sources.wire import BYTES, FIXED64, VARINT, double, fields, signed, text, varint


def unpacked(body: bytes, most: int) -> bytes:
    """Snappy's block format, refused where it says to be larger than ``most`` bytes."""
    cramjam = require("cramjam", whose="Prometheus remote write")
    size, _ = varint(memoryview(body), 0)
    if size > most:
        raise InputError(f"The body must not be larger than {most} bytes when it is unpacked. It says {size}.")
    try:
        return bytes(cramjam.snappy.decompress_raw(body))
    except Exception as error:  # cramjam raises its own kind
        raise InputError(f"The body must be packed with snappy. It is not: {str(error)[:100]}.") from None


def series_of(message: bytes) -> Iterator[tuple[bytes, list[memoryview], list[tuple[float, int]]]]:
    """Time series: their labels as bytes and as parts, and their samples ``(value, milliseconds)``."""
    for number, kind, _, content in fields(memoryview(message)):
        if number != 1 or kind != BYTES:
            continue
        labels: list[memoryview] = []
        samples: list[tuple[float, int]] = []
        for inner, inner_kind, _, part in fields(content):
            if inner == 1 and inner_kind == BYTES:
                labels.append(part)
            elif inner == 2 and inner_kind == BYTES:
                samples.append(_sample(part))
        yield b"\x00".join(labels), labels, samples


def _sample(part: memoryview) -> tuple[float, int]:
    value, at = 0.0, 0
    for number, kind, whole, content in fields(part):
        if number == 1 and kind == FIXED64:
            value = double(content)
        elif number == 2 and kind == VARINT:
            at = signed(whole)
    return value, at


def labels_of(parts: list[memoryview]) -> dict[str, str]:
    """Labels by name."""
    labels = {}
    for part in parts:
        pair = {number: text(content) for number, kind, _, content in fields(part) if kind == BYTES}
        labels[pair.get(1, "")] = pair.get(2, "")
    return labels


def samples_of(message: bytes, source: Samples) -> list[Sample]:
    """The samples of a message that belong to a source.

    Stale markers and infinities are missing values.
    """
    new_samples = []
    for key, parts, samples in series_of(message):
        if key in source._routes:
            route = source._routes[key]
        else:
            labels = labels_of(parts)
            route = source.route(key, labels, labels.get("__name__", ""))
        if route is None:
            continue
        entity, channel = route
        new_samples += [
            Sample(entity, channel, at * 1_000_000, value)
            for value, at in samples
            if math.isfinite(value) and abs(at) < 9e12
        ]
    return new_samples
