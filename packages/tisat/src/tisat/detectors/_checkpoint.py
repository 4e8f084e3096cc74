"""Training checkpoints without pickle: weights, optimisers, history.

Networks and optimisers are taken apart into named arrays and plain values, which :mod:`tisat.persistence.model_file` writes whole or
not at all; a run that is killed while it writes keeps the checkpoint of the epoch before. A checkpoint names the
parameters and the data it belongs to, and is refused for any others.

This module does not know how a network is trained.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tisat.detectors.networks import torch
from tisat.errors import ArtefactError
from tisat.persistence.model_file import read_artefact, write_artefact
from tisat.utils.types import AnyArray, Arrays, JsonDict, JsonMap, Options, Params

if TYPE_CHECKING:
    from tisat.detectors._training import Phase


def network_arrays(network: torch.nn.Module, *, prefix: str) -> Arrays:
    """The tensors of a network, parameters and buffers, as named arrays."""
    return {f"{prefix}{name}": tensor.detach().cpu().numpy().copy() for name, tensor in network.state_dict().items()}


def load_network(network: torch.nn.Module, arrays: Mapping[str, AnyArray], *, prefix: str, what: str) -> None:
    """Put named arrays into ``network``; refuse names or shapes that are not its own."""
    expected = network.state_dict()
    weights = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    odd = sorted(set(expected) ^ set(weights))
    if odd:
        verb = "lacks" if odd[0] in expected else "has the unknown"
        raise ArtefactError(f"{what} must hold exactly the tensors of its network. It {verb} tensor {odd[0]!r}.")
    tensors = {}
    for name, tensor in expected.items():
        array = np.array(weights[name])  # a copy that torch may own
        if tuple(tensor.shape) == () and array.size == 1:
            array = array.reshape(())  # a file has no arrays without an axis
        if array.shape != tuple(tensor.shape):
            raise ArtefactError(
                f"{what} must hold {name!r} with shape {tuple(tensor.shape)}. Got shape {array.shape} instead."
            )
        tensors[name] = torch.from_numpy(array)
    network.load_state_dict(tensors)


def _optimizer_parts(name: str, optimizer: torch.optim.Optimizer) -> tuple[JsonDict, Arrays]:
    state = optimizer.state_dict()
    arrays: Arrays = {}
    plain: JsonDict = {}
    for index, entries in state["state"].items():
        for key, value in entries.items():
            if isinstance(value, torch.Tensor) and value.ndim:
                arrays[f"optimizer.{name}.{index}.{key}"] = value.detach().cpu().numpy().copy()
            else:  # a step counter: a number, or a tensor without an axis
                plain[f"{index}.{key}"] = float(value)
    return {"groups": state["param_groups"], "state": plain}, arrays


def _load_optimizer(name: str, optimizer: torch.optim.Optimizer, plain: JsonMap, arrays: Arrays) -> None:
    state: dict[int, JsonDict] = {}
    prefix = f"optimizer.{name}."
    mine = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    tensors = {key: torch.from_numpy(np.array(array)) for key, array in mine.items()}
    numbers = {key: torch.tensor(value) for key, value in plain["state"].items()}
    for key, tensor in {**tensors, **numbers}.items():
        index, _, entry = key.partition(".")
        state.setdefault(int(index), {})[entry] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": plain["groups"]})


@dataclass
class Progress:
    """How far training has come."""

    stage: int = 0  # which phase it is in
    epoch: int = 0  # epochs of it that are finished
    start: float = float("inf")  # validation loss before the first epoch, where that is a candidate
    best: float = float("inf")  # lowest validation loss so far
    waited: int = 0  # epochs since then
    history: tuple[dict[str, float], ...] = ()  # one row of mean losses an epoch
    earlier: tuple[dict[str, float], ...] = ()  # the same, of the stages before
    seconds: float = 0.0  # spent in training


def fingerprint(params: Options, data: AnyArray) -> str:
    """Hash of the parameters, scaling and training rows of a checkpoint."""
    kept = {name: value for name, value in params.items() if name not in ("device", "epochs")}
    digest = hashlib.sha256(json.dumps(kept, sort_keys=True, default=repr).encode())
    digest.update(f"{data.dtype.str}{data.shape}".encode())
    digest.update(np.ascontiguousarray(data).data)
    return digest.hexdigest()


def write_checkpoint(
    path: str | Path,
    *,
    belongs_to: str,
    progress: Progress,
    network: torch.nn.Module,
    best: Arrays,
    stage: Phase,
) -> None:
    """Write where training stands after an epoch."""
    arrays = {**network_arrays(network, prefix="network."), **best}
    for name, helper in stage.helpers.items():
        arrays.update(network_arrays(helper, prefix=f"helper.{name}."))
    plain: JsonDict = {}
    for name, optimizer in stage.optimizers.items():
        plain[name], tensors = _optimizer_parts(name, optimizer)
        arrays.update(tensors)
    finite = {name: None if value == np.inf else value for name, value in vars(progress).items()}
    document = {"kind": "checkpoint", "belongs_to": belongs_to, **finite, "optimizers": plain}
    write_artefact(path, document, arrays)


def read_checkpoint(
    path: str | Path,
    *,
    belongs_to: str,
    network: torch.nn.Module,
    stages: Sequence[Phase],
) -> tuple[Progress, Arrays]:
    """Put network and optimisers back where training stood.

    How far it had come, and the best weights.
    """
    document, arrays = read_artefact(path)
    if document.get("kind") != "checkpoint":
        raise ArtefactError(
            f"The checkpoint {str(path)!r} must be one of a training run. Got a {document.get('kind')!r} file instead."
        )
    if document["belongs_to"] != belongs_to:
        raise ArtefactError(
            f"The checkpoint {str(path)!r} must belong to the same parameters and training rows. "
            "It was written by another run: use another file, or resume=False to start over."
        )
    load_network(network, arrays, prefix="network.", what=f"The checkpoint {str(path)!r}")
    if document["stage"] not in range(len(stages)):
        raise ArtefactError(f"The checkpoint {str(path)!r} must stand in one of {len(stages)} stages of training.")
    stage = stages[document["stage"]]
    for name, helper in stage.helpers.items():
        load_network(helper, arrays, prefix=f"helper.{name}.", what=f"The checkpoint {str(path)!r}")
    for name, optimizer in stage.optimizers.items():
        _load_optimizer(name, optimizer, document["optimizers"][name], arrays)
    kept: Params = {field.name: document[field.name] for field in fields(Progress)}
    kept.update({name: np.inf for name, value in kept.items() if value is None})
    kept.update({name: tuple(kept[name]) for name in ("history", "earlier")})
    return Progress(**kept), {name: array for name, array in arrays.items() if name.startswith("best.")}
