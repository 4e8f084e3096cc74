"""The views of a prism to be fitted, and views and forecaster from what a file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tisat.detectors.base import Array, Detector
from tisat.detectors.prism import VIEWS, View
from tisat.detectors.prism.activity import Activity
from tisat.detectors.prism.forecaster import LINE, make_forecaster
from tisat.detectors.prism.modes import MODES, Plan
from tisat.detectors.prism.schedule import SLOTS, are_places
from tisat.errors import ArtefactError
from tisat.persistence.estimator import detector_from
from tisat.utils.types import AnyArray, JsonMap


def restored_forecaster(
    name: str, document: JsonMap | None, tensors: Mapping[str, AnyArray], channels: Sequence[str]
) -> Detector | None:
    """The forecaster in the place of the line; None for the line; refused where it is not the one that is named."""
    if document is None:
        if name != LINE:
            raise ArtefactError("A file of Prism must hold the forecaster its parameters name. It does not.")
        return None
    mine = {key[11:]: array for key, array in tensors.items() if key.startswith("forecaster.")}
    if document["detector"] != name:
        raise ArtefactError("The forecaster in a file of Prism must be the one its parameters name. It is not.")
    forecaster = detector_from(type(make_forecaster(name)), dict(document), mine, path="forecaster")
    if forecaster.channels_ != tuple(channels):
        raise ArtefactError("The forecaster in a file of Prism must have its channels. It does not.")
    return forecaster


def fresh_views(plan: Plan | None, holidays: Array) -> dict[str, View]:
    """The views by name, to be fitted: those of modes where they help, else the activity at times of jumps."""
    views: dict[str, View] = {name: view() for name, view in VIEWS.items()}
    if plan is not None and plan.modes:
        views |= {name: view(plan, holidays) for name, view in MODES.items()}
    elif plan is not None:
        views["activity"] = Activity(plan.times)
    return views


def restored_views(tensors: Mapping[str, AnyArray], n_channels: int) -> dict[str, View]:
    """The views by name, each from its arrays."""
    views: dict[str, View] = {name: view() for name, view in VIEWS.items()}
    if "mode.switches" in tensors:
        views |= {name: view() for name, view in MODES.items()}
    for name, view in views.items():
        there = (one for one in view.learned if one not in view.added or f"{name}.{one}" in tensors)
        view.restore({attribute: tensors[f"{name}.{attribute}"] for attribute in there}, n_channels)
    return views


def check_parts(prism: Any, views: Mapping[str, View]) -> None:
    """Refuse a prism from a file whose views, forecast and points do not fit together."""
    slots = views["activity"].arrays()["slots"]
    fits = (
        are_places(slots, SLOTS)
        and bool((views["activity"].arrays()["slot_spread"] > 0).all())
        and len(prism.ordinary_) == len(views)
        and prism.levels_.shape == (len(views), 2)
        and prism.exponents_.shape == (len(views),)
        and prism.n_points_ == len(views) + 2 * prism.n_channels_ + 1
        and bool(((prism.exponents_ > 0) & (prism.exponents_ <= 1)).all())
    )
    if not fits or prism.weights_.shape != (prism.lags - 1, prism.n_channels_):
        raise ArtefactError("The views and the forecast of a model file must fit together. They do not.")
