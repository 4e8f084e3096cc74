"""Checks of what a state file holds before a monitor continues from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from tisat.alarms.alarms import Alarm
from tisat.alarms.explanation import Reason
from tisat.alarms.joined_channels import Further
from tisat.alarms.ongoing import STATES
from tisat.errors import ArtefactError
from tisat.gap_filling import Stamp
from tisat.utils.fitted_state import check_fields, check_layout
from tisat.utils.stage import State, join_state, split_state
from tisat.utils.types import Arrays, JsonDict, JsonMap
from tisat.watch.watch import Watch

EVIDENCE = "run.evidence"
CONTROL = "run.accumulator.control"  # kept where the threshold is controlled
# Parts that states of version 0.2 do not have: they begin afresh.
ADDED = (
    CONTROL,
    "peak",
    "peak_row",
    "peak_point",
    "still_last",
    "still_rows",
    "deviations",
    "accepted",
    "mode.positions",
    "switching",
    "rise",
    "held",
)


def check_stamp(stamp: object, name: str) -> Stamp:
    """The time of a row from a state file; refused where it cannot be one."""
    if stamp is None or isinstance(stamp, str):
        return stamp
    if isinstance(stamp, float | int) and not isinstance(stamp, bool) and abs(stamp) < 2**63:
        return stamp
    raise ArtefactError(f"The {name!r} of a monitor must be a time or nothing. Got {str(stamp)[:40]!r} instead.")


def check_alarm(document: object, channels: Sequence[str]) -> JsonDict:
    """The alarm of a state file, its channels by share.

    Refused where a value is not as declared.
    """
    if not isinstance(document, Mapping):
        raise ArtefactError("The alarm of a monitor must be names and values.")
    alarm = dict(document)
    check_fields(Alarm, alarm, whose="an alarm")
    for name in ("raised_time", "onset_time", "cleared_time", "back_time"):
        check_stamp(alarm.get(name), name)
    if alarm.get("state", "raised") not in STATES:
        raise ArtefactError(
            f"The state of an alarm must be one of {', '.join(STATES)}. Got {str(alarm['state'])[:40]!r} instead."
        )
    shares = alarm["channels"]
    place = {channel: c for c, channel in enumerate(channels)}
    if not isinstance(shares, Mapping) or not all(
        name in place and type(share) in (int, float) and 0 <= share <= 1.000001 for name, share in shares.items()
    ):
        raise ArtefactError("The channels of an alarm must be the model's, each with a share up to 1.")
    alarm["channels"] = dict(sorted(shares.items(), key=lambda item: (-item[1], place[item[0]])))
    more = list(alarm.get("further", ()))
    for one in more:
        check_fields(Further, one, whose="an alarm")
        check_stamp(one["time"], "time")
    for reason in [*alarm["reasons"], *(reason for one in more for reason in one["reasons"])]:
        check_fields(Reason, reason, whose="an alarm")
    return alarm


def complete_state(state: State, fresh: State) -> State:
    """Complete a state of an earlier version by parts of a fresh one.

    Refused where an array has another shape or type.
    """
    document, arrays = split_state(state)
    expected = split_state(fresh)[1]
    if "silence" in document:  # its name in version 0.2
        document["carry"] = document.pop("silence")
    kept, wanted = arrays.get("stream.buffer"), expected.get("stream.buffer")
    if kept is not None and wanted is not None and kept.ndim == 2 and kept.shape == (len(wanted), wanted.shape[-1] - 1):
        arrays["stream.buffer"] = np.column_stack([kept, np.full(len(kept), np.nan)])  # the local time, unknown
    _mark(arrays, expected)
    arrays = {**{name: expected[name] for name in ADDED if name in expected}, **arrays}
    if CONTROL not in expected:
        arrays.pop(CONTROL, None)
    check_layout(arrays, expected, whose="a monitor")
    return join_state(document, arrays)


def _mark(arrays: Arrays, expected: Arrays) -> None:
    """Accept any number of scores above the level in the pasts of the excess rule, if as many are marked.

    States of earlier versions hold all scores: as they are, or as one table, and sorted as well.
    """
    past, lengths = arrays.get(f"{EVIDENCE}.past"), expected.get(f"{EVIDENCE}.lengths")
    if past is None or lengths is None:
        return
    if f"{EVIDENCE}.lengths" not in arrays:
        arrays.pop(f"{EVIDENCE}.ordered", None)
        arrays[f"{EVIDENCE}.lengths"] = lengths
        if past.shape == (len(lengths), lengths.max()):
            past = np.concatenate([one[:length] for one, length in zip(past, lengths, strict=True)])
    wanted, total = expected[f"{EVIDENCE}.above"], int(lengths.sum())
    above = arrays.setdefault(f"{EVIDENCE}.above", np.packbits(np.ones(total, dtype=np.bool_)))
    arrays[f"{EVIDENCE}.past"] = past
    marked = above.dtype == np.uint8 and above.shape == wanted.shape
    if marked and past.shape == (np.unpackbits(above, count=total).sum(),):
        expected[f"{EVIDENCE}.past"] = np.zeros(past.shape)


@contextmanager
def whole_state(header: JsonMap, watch: Watch, where: str, *, kind: str) -> Iterator[None]:
    """Refuse a state of something else or of another watch.

    A damaged one is refused in one sentence.
    """
    if header.get("kind") != kind:
        raise ArtefactError(f"The state file {where!r} must hold a {kind}. Got {header.get('kind')!r} instead.")
    if header.get("watch") != watch.fingerprint():
        raise ArtefactError(
            f"The state file {where!r} must belong to this model and rule. It was written with another one; "
            "give that one, or begin with a new state file."
        )
    try:
        yield
    except ArtefactError:
        raise
    except Exception as error:
        raise ArtefactError(
            f"The state file {where!r} must hold a whole {kind}. It does not: {str(error)[:300]}"
        ) from None
