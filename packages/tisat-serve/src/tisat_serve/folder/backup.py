"""Back up, restore and export the folder of a service; estimate its needs."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import time as clocks
from pathlib import Path

import numpy as np

from tisat.errors import InputError
from tisat.persistence.model_file import write_bytes
from tisat.utils.locking import locked
from tisat.watch import Watch
from tisat_serve.alarms.alarm_log import about, in_pauses
from tisat_serve.engine.engine import Engine
from tisat_serve.engine.group import Group
from tisat_serve.folder.archive import nanoseconds, taken_rows
from tisat_serve.store import FILE, VERSION, Store, file_in, opened
from tisat_serve.structs import Row
from tisat_serve.views.prometheus import resident_bytes


def backup(folder: Path, target: Path) -> int:
    """One file with everything, made while the service runs; its size."""
    source = file_in(folder)
    if target.exists():
        raise InputError(f"The backup {str(target)!r} must not be there yet. It is; give another name.")
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    with opened(source) as live, opened(part, mode="rwc") as copy:
        live.backup(copy, pages=4096)
    part.chmod(0o600)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    return target.stat().st_size


def restore(source: Path, folder: Path) -> None:
    """Put a backup into an empty folder."""
    with opened(source) as copy:
        try:
            (version,) = copy.execute("PRAGMA user_version").fetchone()
            (sound,) = copy.execute("PRAGMA integrity_check").fetchone()
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"The backup {str(source)!r} must be one of tisat serve. It cannot be read: {error}."
            ) from None
    if not 1 <= version <= VERSION or sound != "ok":
        raise InputError(
            f"The backup {str(source)!r} must be whole and of version {VERSION} at most. Got version {version}, {sound}."
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if (folder / FILE).exists():
        raise InputError(f"The folder {str(folder)!r} must not hold a store yet. It does; give an empty one.")
    with locked(folder / "lock", InputError(f"The folder {str(folder)!r} must have no service running. It has.")):
        handle, name = tempfile.mkstemp(dir=folder)
        os.close(handle)
        shutil.copyfile(source, name)
        Path(name).chmod(0o600)
        Path(name).replace(folder / FILE)


def export(
    folder: Path, out: Path, *, normal: bool = False, start: float | None = None, stop: float | None = None
) -> list[tuple[str, int]]:
    """History as Parquet, one file an entity, as ``tisat fit`` reads it.

    Names and rows.

    Rows of alarms, and of maintenance windows that are not to be learned from, have label 1; ``normal`` leaves them out,
    for ``tisat fit``. Each file appears whole or not at all.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = file_in(folder)
    out.mkdir(parents=True, exist_ok=True)
    written_files = []
    with opened(source) as store:
        cursor = store.execute("SELECT * FROM pauses WHERE unlearned AND ended IS NULL")
        pauses = [dict(zip([column[0] for column in cursor.description], row, strict=True)) for row in cursor]
        channels = dict(store.execute("SELECT key, value FROM meta WHERE key LIKE 'channels:%'").fetchall())
        for number, name, group, dates in store.execute(
            "SELECT id, name, grp, dates FROM entities ORDER BY name"
        ).fetchall():
            pieces = list(taken_rows(store, number, *nanoseconds(start, stop)))
            if not pieces:
                continue
            times, values, active = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
            active = active.astype(np.int8)
            active[in_pauses(about(pauses, name), times)] = 1
            if normal:
                times, values, active = times[active == 0], values[active == 0], active[active == 0]
            names = json.loads(channels.get(f"channels:{group}", "[]")) or [f"c{c}" for c in range(values.shape[1])]
            when = pa.array(times.view("datetime64[ns]")) if dates else pa.array(times * 1e-9)
            columns = {"time": when, **{channel: pa.array(values[:, c]) for c, channel in enumerate(names)}}
            table = pa.table({**columns, "label": pa.array(active)})
            safe = "".join(sign if sign.isalnum() or sign in "-_." else "_" for sign in name)
            written = pa.BufferOutputStream()
            pq.write_table(table, written)
            write_bytes(out / f"{number:05d}-{safe[:80]}.parquet", written.getvalue().to_pybytes())
            written_files.append((name, len(times)))
    return written_files


def estimate(watch: Watch, *, entities: int, days: float) -> dict[str, float]:
    """Measure the throughput, memory and disk that a fleet will need."""
    step = watch.period or 60.0
    median, spread = watch.detector.usual_
    rng = np.random.default_rng(0)
    sample, rows = min(entities, 100), 96
    with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
        engine = Engine(store, [Group("main", watch)])
        table = median + np.where(np.isfinite(spread), spread, 0.0) * rng.normal(size=(rows, len(median)))
        for half in range(2):  # what comes first compiles; the second half is what one more costs
            names = [f"e{i}" for i in range(half * sample, (half + 1) * sample)]
            before, began = resident_bytes(), clocks.perf_counter()
            for k in range(rows):
                engine.ingest([Row(name, table[k].tolist(), 1.7e9 + step * k) for name in names])
        speed = sample * rows / (clocks.perf_counter() - began)
        memory = (resident_bytes() - before) / sample
        engine.close()
        pieces = store.read("SELECT sum(length(brief) + length(body)), sum(rows) FROM history")[0]
        states = store.read("SELECT avg(length(state)) FROM entities")[0][0]
    return {
        "entities": entities,
        "rows_per_second_needed": entities / step,
        "rows_per_second_here": speed,
        "share_of_a_core": entities / step / speed,
        "memory_bytes": before + memory * (entities - sample),
        "disk_bytes": entities * (states + pieces[0] / pieces[1] * days * 86400.0 / step),
        "restart_seconds": entities * (0.003 + 32 / max(speed, 1.0)),
    }
