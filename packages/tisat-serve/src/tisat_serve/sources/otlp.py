"""OpenTelemetry metrics over HTTP, protobuf or JSON: gauges and delta sums become samples; what only ever grows is refused with a sentence."""

from __future__ import annotations

import math
import struct

import msgspec

from tisat.errors import InputError
from tisat.utils.types import JsonDict
from tisat_serve.sources.samples import Sample, Samples
from tisat_serve.sources.wire import BYTES, FIXED64, VARINT, double, fields, text

DELTA = 1  # aggregation temporality
Point = tuple[dict[str, str], int, float]  # attributes, nanoseconds, value
CUMULATIVE = "{name} is a cumulative sum, which only ever grows: send it as delta (OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta)"


def from_json(body: bytes) -> list[tuple[dict[str, str], str, list[Point], bool]]:
    """Resource attributes, metric name, points, and whether they can be taken."""
    try:
        document = msgspec.json.decode(body)
        series = []
        for resource in document.get("resourceMetrics", []):
            attributes = _attributes(resource.get("resource", {}).get("attributes", []))
            for scope in resource.get("scopeMetrics", []):
                for metric in scope.get("metrics", []):
                    points, good = _json_points(metric)
                    series.append((attributes, str(metric.get("name", "")), points, good))
        return series
    except (msgspec.DecodeError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The body must be OTLP metrics in JSON. It is not: {str(error)[:200]}.") from None


def _attributes(pairs: list[JsonDict]) -> dict[str, str]:
    return {str(pair["key"]): str(next(iter(pair.get("value", {}).values()), "")) for pair in pairs if "key" in pair}


def _json_points(metric: JsonDict) -> tuple[list[Point], bool]:
    gauge, total = metric.get("gauge"), metric.get("sum")
    holder = gauge if gauge is not None else total
    if holder is None:
        return [], False
    good = (
        gauge is not None
        or str(holder.get("aggregationTemporality")) in ("1", "AGGREGATION_TEMPORALITY_DELTA")
        or not holder.get("isMonotonic", False)
    )
    points = []
    for one in holder.get("dataPoints", []):
        value = one.get("asDouble", one.get("asInt"))
        if value is not None:
            points.append((_attributes(one.get("attributes", [])), int(one.get("timeUnixNano", 0)), float(value)))
    return points, good


def from_protobuf(body: bytes) -> list[tuple[dict[str, str], str, list[Point], bool]]:
    """The same from protobuf."""
    series = []
    for resource in _parts(memoryview(body), 1):
        attributes: dict[str, str] = {}
        for holder in _parts(resource, 1):
            attributes |= _pairs(holder, 1)
        for scope in _parts(resource, 2):
            for metric in _parts(scope, 2):
                name = "".join(text(part) for part in _parts(metric, 1))
                points: list[Point] = []
                good = False
                for number, kind, _, content in fields(metric):
                    if kind == BYTES and number in (5, 7):
                        points += [_point(part) for part in _parts(content, 1)]
                        whole = {
                            inner: value for inner, inner_kind, value, _ in fields(content) if inner_kind == VARINT
                        }
                        good = number == 5 or whole.get(2) == DELTA or not whole.get(3, 0)
                series.append((attributes, name, points, good))
    return series


def _parts(message: memoryview, number: int) -> list[memoryview]:
    return [content for found, kind, _, content in fields(message) if found == number and kind == BYTES]


def _pairs(message: memoryview, number: int) -> dict[str, str]:
    pairs = {}
    for pair in _parts(message, number):
        key = "".join(text(part) for part in _parts(pair, 1))
        for value in _parts(pair, 2):
            for inner, kind, whole, content in fields(value):
                pairs[key] = text(content) if kind == BYTES and inner == 1 else str(whole)
    return pairs


def _point(part: memoryview) -> Point:
    at, value = 0, math.nan
    for number, kind, _, content in fields(part):
        if kind == FIXED64 and number == 3:
            at = int.from_bytes(content, "little")
        elif kind == FIXED64 and number == 4:
            value = double(content)
        elif kind == FIXED64 and number == 6:
            value = float(struct.unpack("<q", content)[0])
    return _pairs(part, 7), at, value


def samples_of(body: bytes, source: Samples, *, json: bool) -> tuple[list[Sample], list[str]]:
    """The samples of a body, and why some metrics were left out."""
    samples: list[Sample] = []
    wrong: dict[str, None] = {}
    for resource, name, points, good in from_json(body) if json else from_protobuf(body):
        if not good:
            if points:
                wrong[CUMULATIVE.format(name=name[:80])] = None
            continue
        for attributes, at, value in points:
            labels = {**resource, **attributes}
            found = source.route((name, tuple(sorted(labels.items()))), labels, name)
            if found is not None and math.isfinite(value) and 0 < at < 2**62:
                samples.append(Sample(*found, at, value))
    return samples, list(wrong)
