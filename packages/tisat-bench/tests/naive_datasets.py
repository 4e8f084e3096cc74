"""Reference implementations of the data-set readers: the published layouts read cell by cell with plain Python."""

from __future__ import annotations

import json
from pathlib import Path


def table(path: Path) -> list[list[float]]:
    """A headerless comma-separated file."""
    return [[float(cell) for cell in line.split(",")] for line in path.read_text().splitlines()]


def telemanom_labels(rows: list[dict[str, str]], channel: str) -> list[int]:
    """Every row of the channel marks its intervals, both ends included."""
    mine = [row for row in rows if row["chan_id"] == channel]
    labels = [0] * int(mine[0]["num_values"])
    for row in mine:
        for first, last in json.loads(row["anomaly_sequences"]):
            for t in range(first, last + 1):
                labels[t] = 1
    return labels


def swat_label(cell: str) -> int:
    """What a person reads in the last column."""
    return {"normal": 0, "attack": 1}["".join(cell.split()).lower()]


def swat_seconds(cell: str) -> int:
    """Seconds of the day of a time such as ``' 28/12/2015 10:00:00 AM'``."""
    _, clock, half = cell.split()
    hour, minute, second = (int(part) for part in clock.split(":"))
    return (hour % 12 + 12 * (half == "PM")) * 3600 + minute * 60 + second


def windows(rows: list[list[float]], length: int, step: int) -> list[list[list[float]]]:
    """Every window, copied out one by one."""
    return [rows[start : start + length] for start in range(0, len(rows) - length + 1, step)]
