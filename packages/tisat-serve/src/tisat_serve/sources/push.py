"""The addresses others push samples to: Prometheus remote write, Influx lines, OpenTelemetry metrics."""

from __future__ import annotations

import time as clocks
from collections.abc import Awaitable, Callable, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tisat.errors import InputError, TisatError
from tisat_serve.api.bodies import BodyError, answer, body_of, refusal
from tisat_serve.service import Service
from tisat_serve.sources import influx, otlp, remote_write
from tisat_serve.sources.samples import Sample, Samples

Handler = Callable[[Request], Awaitable[Response]]


def _guarded(service: Service, work: Callable[[Request, bytes, Sequence[Samples]], Awaitable[Response]]) -> Handler:

    async def handle(request: Request) -> Response:
        try:
            sources = [part for part in service.parts if isinstance(part, Samples)]
            if not sources:
                raise InputError(
                    "The configuration must have a source of kind 'samples' to take these: [[source]] kind = 'samples'. It has none."
                )
            snappy = request.headers.get("content-encoding", "").lower() == "snappy"
            return await work(request, await body_of(request, service.settings.body_bytes, unpack=not snappy), sources)
        except TisatError as error:
            return refusal(error)

    return handle


async def _take_samples(
    found: Sequence[Samples], samples_of: Callable[[Samples], tuple[list[Sample], list[str]]]
) -> list[str]:
    """Let every source take its samples of a body; what was wrong with the body."""

    def work() -> list[str]:
        wrong: list[str] = []
        for source in found:
            samples, wrong = samples_of(source)
            source.take(samples)
        return wrong

    return await run_in_threadpool(work)


def routes(service: Service) -> list[Route]:
    """``/api/v1/write``, ``/write``, ``/api/v2/write`` and ``/v1/metrics``."""

    async def prometheus(request: Request, body: bytes, found: Sequence[Samples]) -> Response:
        kind = request.headers.get("content-type", "")
        if "write.v2" in kind or request.headers.get("x-prometheus-remote-write-version", "0.1.0").startswith("2"):
            raise BodyError(
                "Remote write must be version 1.0. Got 2.0; set protobuf_message: prometheus.WriteRequest.", 415
            )
        plain = await run_in_threadpool(remote_write.unpacked, body, service.settings.body_bytes)
        await _take_samples(found, lambda source: (remote_write.samples_of(plain, source), []))
        return Response(status_code=204)

    async def lines(request: Request, body: bytes, found: Sequence[Samples]) -> Response:
        precision = request.query_params.get("precision", "ns")
        now = int(clocks.time() * 1e9)
        wrong = await _take_samples(found, lambda source: influx.samples_of(body, source, precision=precision, now=now))
        if wrong:
            said = f"{len(wrong)} lines could not be read, the others were taken: {'; '.join(wrong[:3])}"
            return answer({"code": "invalid", "message": said, "error": said}, 400)
        return Response(status_code=204)

    async def telemetry(request: Request, body: bytes, found: Sequence[Samples]) -> Response:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/json", "application/x-protobuf"):
            raise BodyError(
                f"The Content-Type must be application/x-protobuf or application/json. Got {kind[:60]!r} instead.", 415
            )
        json = kind == "application/json"
        wrong = await _take_samples(found, lambda source: otlp.samples_of(body, source, json=json))
        if json:
            left_out = {"rejectedDataPoints": str(len(wrong)), "errorMessage": "; ".join(wrong[:3])}
            return answer({"partialSuccess": left_out} if wrong else {})
        return Response(_partial(wrong), media_type="application/x-protobuf")

    return [
        Route("/api/v1/write", _guarded(service, prometheus), methods=["POST"]),
        Route("/write", _guarded(service, lines), methods=["POST"]),
        Route("/api/v2/write", _guarded(service, lines), methods=["POST"]),
        Route("/v1/metrics", _guarded(service, telemetry), methods=["POST"]),
    ]


def _partial(wrong: list[str]) -> bytes:
    """ExportMetricsServiceResponse with what was left out; empty where nothing was."""
    if not wrong:
        return b""
    said = "; ".join(wrong[:2]).encode()[:120]
    inner = b"\x08" + bytes([min(len(wrong), 127)]) + b"\x12" + bytes([len(said)]) + said
    return b"\x0a" + bytes([len(inner)]) + inner if len(inner) < 128 else b""
