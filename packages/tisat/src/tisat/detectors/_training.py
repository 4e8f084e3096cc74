"""The one training loop of the package: stages of epochs over windows, early stopping, checkpoints.

Here is what is easy to get wrong once per file: seeds that leave the global generator alone, early stopping on a tail that
shares no row with what is trained on, gradient clipping, a stop with a sentence when the loss is not finite, checkpoints
without pickle that resume to the same weights. This module knows no series, no scaling and no score: what comes in is
scaled rows, what goes out a trained network (:class:`~tisat.detectors._neural.NeuralDetector` has the rest).
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from tisat.detectors._checkpoint import (
    Progress,
    fingerprint,
    load_network,
    network_arrays,
    read_checkpoint,
    write_checkpoint,
)
from tisat.detectors.base import Detector
from tisat.detectors.networks import torch
from tisat.errors import ParameterError, TrainingError
from tisat.io.durations import spelt
from tisat.utils.parameters import choice, integer, learned, real
from tisat.utils.progress import Bar, progress
from tisat.utils.types import Arrays

Batches: TypeAlias = "Callable[..., Iterator[torch.Tensor]]"
Optimizers: TypeAlias = "dict[str, torch.optim.Optimizer]"
Losses: TypeAlias = "dict[str, torch.Tensor]"
Starts: TypeAlias = npt.NDArray[np.int64]
Network = TypeVar("Network", bound="torch.nn.Module")

ANCHORS = ("none", "mean")
REPORT = logging.getLogger("tisat.training")  # where training stands, a line an epoch; the command line prints it
ESTIMATED_AFTER = 4  # steps of an epoch after which its time is said; the first, which is slower, does not count
SLOW, LONG = 5.0, 60.0  # seconds of a first step, of a training, from which its time is said: LONG as a warning
INITIAL, TRAINING, VALIDATION, SCORING, EARLIER = range(5)  # what a seed is drawn for


def available_device(wanted: str) -> torch.device:
    """The device to compute on: for ``"auto"`` the first there is of cuda, mps, cpu."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if wanted == "auto":
        return torch.device(next(name for name, present in there.items() if present))
    if not there[wanted]:
        raise ParameterError(f"The 'device' parameter must name a device of this machine. Got {wanted!r} instead.")
    return torch.device(wanted)


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[torch.Generator]:
    """Seed torch for the length of a block and put its global state back.

    A generator of the same seed.
    """
    forked = {"devices": []} if device.type == "cpu" else {"devices": [device.index or 0], "device_type": device.type}
    with torch.random.fork_rng(**forked):
        torch.manual_seed(seed)
        yield torch.Generator(device=device).manual_seed(seed)


@dataclass(frozen=True)
class Phase:
    """A phase of training: what one step does, what is trained, for how long."""

    name: str
    epochs: int
    optimizers: Optimizers
    step: Callable[[torch.Tensor, torch.Generator], Losses]  # a batch and a generator in, the losses by name out
    watched: bool = False  # early stopping watches the validation loss
    before: Callable[[Batches], None] | None = None  # once, before the first epoch
    after_epoch: Callable[[Batches, int, int], None] | None = None  # with the epochs done, and those in all
    helpers: Mapping[str, torch.nn.Module] = field(default_factory=dict)  # trained too, and then thrown away
    start_counts: bool = False  # early stopping may keep the network as it was before the first epoch


class TrainedDetector(Detector, Generic[Network]):
    """A detector whose network is trained by the loop: its parameters, what a detector says to it, and the loop."""

    window: int = integer(100, at_least=1, doc="Rows the network sees.")
    stride: int = integer(1, at_least=1, doc="Every how many rows a training window starts.")
    epochs: int = integer(10, at_least=0, doc="Passes over the training windows; 0 gives the untrained network.")
    batch_size: int = integer(64, at_least=1, doc="Windows per gradient step.")
    learning_rate: float = real(1e-3, above=0.0, doc="Of the optimiser.")
    validation: float = real(
        0.1,
        at_least=0.0,
        at_most=0.5,
        doc="Share of each training part, its tail, that early stopping watches; 0: none.",
    )
    patience: int = integer(3, at_least=1, doc="Epochs without a better validation loss before training stops.")
    max_windows: int | None = integer(
        None, at_least=1, none="all of them", doc="Training windows per epoch at most, drawn anew each time."
    )
    gradient_clip: float | None = real(
        1.0, above=0.0, none="not clipped", doc="Largest norm of the gradient of one optimiser's parameters."
    )
    decay: float = real(1.0, above=0.0, at_most=1.0, doc="What the learning rate is multiplied by after each epoch.")
    weight_decay: float = real(0.0, at_least=0.0, doc="Coefficient of the L2 penalty on the weights.")
    min_steps: int = integer(
        0, at_least=0, doc="Gradient steps at least: there are more epochs where these have fewer."
    )
    anchor: str = choice("none", of=ANCHORS, doc="What a window is measured from: nothing, or its own mean.")
    random_state: int = integer(0, at_least=0, doc="The same seed gives the same weights.")

    # Learned by fit
    network_: Network = learned()
    history_: tuple[dict[str, float], ...] = learned()  # one row of mean losses an epoch
    pretraining_: tuple[dict[str, float], ...] = learned()  # the same, of earlier stages
    training_seconds_: float = learned()
    steps_: int = learned()  # gradient steps of all stages

    # ------------------------------------------------------------------ what a detector writes

    @abstractmethod
    def _network(self, n_channels: int) -> Network:
        """A fresh network, made from the parameters alone.

        Drawn weights come from the seeded global generator.
        """

    @abstractmethod
    def _loss(self, network: Network, batch: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """The loss of scaled windows ``(b, rows, C)``: what is minimised and what early stopping watches."""

    # ------------------------------------------------------------------ what it may override

    def _rows(self) -> int:
        """Rows of one window."""
        return self.window

    def _optimizers(self, network: Network) -> Optimizers:
        return {"all": torch.optim.Adam(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)}

    def _training_step(
        self, network: Network, batch: torch.Tensor, optimizers: Optimizers, generator: torch.Generator
    ) -> dict[str, torch.Tensor]:
        """One step on one batch; the losses by name, of which ``"loss"`` is shown."""
        loss = self._loss(network, batch, generator)
        self._descend(optimizers["all"], loss)
        return {"loss": loss}

    def _phases(self, network: Network) -> Sequence[Phase]:
        """The phases of training, the main one last."""
        return [self._main_phase(network)]

    def _main_phase(self, network: Network) -> Phase:
        optimizers = self._optimizers(network)

        def step(batch: torch.Tensor, generator: torch.Generator) -> Losses:
            return self._training_step(network, batch, optimizers, generator)

        def after_epoch(batches: Batches, done: int, epochs: int) -> None:
            self._after_epoch(network, batches, optimizers, done, epochs)

        return Phase(
            "training", self.epochs, optimizers, step, watched=True,
            before=partial(self._before_training, network), after_epoch=after_epoch,
            start_counts=self._start_is_a_candidate(),
        )  # fmt: skip

    def _start_is_a_candidate(self) -> bool:
        """Whether early stopping may keep the network as it was before the first epoch."""
        return False

    def _review_training(self, network: Network, progress: Progress) -> None:
        """Say, with the best weights, whether training was worth it (the losses are in ``progress``)."""
        return

    def _before_training(self, network: Network, batches: Batches) -> None:
        return

    def _after_epoch(self, network: Network, batches: Batches, optimizers: Optimizers, done: int, epochs: int) -> None:
        for optimizer in optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] *= self.decay

    def _anchored_windows(self, windows: torch.Tensor) -> torch.Tensor:
        """Windows ``(b, rows, C)`` measured from their anchor.

        The middle of the training range is where it is put.
        """
        return windows if self.anchor == "none" else windows - windows.mean(dim=1, keepdim=True) + 0.5

    def _after_training(self, network: Network, batches: Batches) -> None:
        return

    # ------------------------------------------------------------------ windows and seeds

    def _descend(self, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
        """One step of ``optimizer`` down the gradient of ``loss``, clipped."""
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        if self.gradient_clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self.gradient_clip)
        optimizer.step()

    def _seed(self, *purpose: int) -> int:
        return int(np.random.SeedSequence([self.random_state, *purpose]).generate_state(1, np.uint64)[0] >> 1)

    @property
    def _device(self) -> torch.device:
        """The device of the network."""
        return next(self.network_.parameters()).device

    def _split(self, lengths: Sequence[int], *, stride: int | None = None) -> tuple[Starts, Starts]:
        """First rows of the training and the validation windows in the concatenated parts.

        No row is in both.
        """
        rows, step, train, held_out = self._rows(), stride or self.stride, [], []
        offset = 0
        for length in lengths:
            tail = int(self.validation * length)
            tail = tail if tail >= rows and length - tail >= rows else 0
            train.append(offset + np.arange(0, length - tail - rows + 1, step))
            if tail:
                held_out.append(offset + np.arange(length - tail, length - rows + 1, step))
            offset += length
        return np.concatenate(train).astype(np.int64), np.concatenate([*held_out, np.empty(0)]).astype(np.int64)

    def _batches(self, values: torch.Tensor, starts: Starts) -> Iterator[torch.Tensor]:
        """Windows ``(b, rows, C)`` by their first rows.

        A last batch of one joins the one before it.
        """
        span = torch.arange(self._rows(), device=values.device)
        edges = list(range(0, len(starts), self.batch_size))
        if len(edges) > 1 and len(starts) - edges[-1] == 1:
            edges.pop()
        for first, stop in zip(edges, [*edges[1:], len(starts)], strict=True):
            chosen = torch.from_numpy(starts[first:stop]).to(values.device)
            yield self._anchored_windows(values[chosen[:, None] + span])

    def _stretches(self, values: torch.Tensor, starts: Starts) -> Iterator[torch.Tensor]:
        """The rows ``(n, C)`` under windows that start one after the other."""
        for run in np.split(starts, np.flatnonzero(np.diff(starts) != 1) + 1):
            yield values[run[0] : run[-1] + self._rows()]

    # ------------------------------------------------------------------ the loop

    def _train(self, values: torch.Tensor, lengths: Sequence[int], path: Path | None, *, resume: bool) -> None:
        """Every stage, one after the other, from the beginning or from where a checkpoint stands."""
        network = self.network_
        train, held_out = self._split(lengths)
        with seeded(self._seed(INITIAL, 3), self._device):
            stages = self._phases(network)
        scaling = {
            "low": vars(self)["low_"].tolist(),
            "span": vars(self)["span_"].tolist(),
            "windows": [len(train), len(held_out)],
        }
        belongs_to = "" if path is None else fingerprint({**self._settings(), **scaling}, values.cpu().numpy())

        def in_order(*, stride: int | None = None, unbroken: bool = False) -> Iterator[torch.Tensor]:
            if unbroken:
                return self._stretches(values, self._split(lengths, stride=1)[0])
            return self._batches(values, self._split(lengths, stride=stride)[0])

        state, best = Progress(), Arrays()
        if path is not None and resume and path.exists():
            state, best = read_checkpoint(path, belongs_to=belongs_to, network=network, stages=stages)
            stage = stages[state.stage]
            epochs = self._epochs_of(stage, len(train))
            REPORT.info("%s: %s goes on after epoch %d of %d", type(self).__name__, stage.name, state.epoch, epochs)
        total = sum(self._epochs_of(stage, len(train)) for stage in stages[state.stage :]) - state.epoch
        windows = max(1, total * min(len(train), self.max_windows or len(train)))
        with progress(f"Training {type(self).__name__}", total=windows) as bar:
            for number in range(state.stage, len(stages)):
                stage, last = stages[number], number == len(stages) - 1
                if number > state.stage:
                    state = Progress(stage=number, earlier=(*state.earlier, *state.history), seconds=state.seconds)
                    best = Arrays()
                epochs, warned = self._epochs_of(stage, len(train)), False
                if state.epoch == 0:
                    with torch.no_grad(), seeded(self._seed(INITIAL, 1), self._device):
                        network.eval()
                        if stage.before is not None:
                            stage.before(in_order)
                    if len(held_out) and stage.start_counts:
                        state.start = state.best = self._validation_loss(values, held_out)
                        best = network_arrays(network, prefix="best.")
                while state.epoch < epochs and state.waited < self.patience:
                    started = time.perf_counter()
                    purpose = (TRAINING, state.epoch) if last else (EARLIER, number, state.epoch)
                    left = 0 if warned else epochs - state.epoch
                    title, warned = f"{stage.name} {state.epoch + 1}/{epochs}", True
                    row = self._epoch(values, train, stage, purpose, title, bar, left=left)
                    state.epoch += 1
                    with torch.no_grad(), seeded(self._seed(VALIDATION, state.epoch - 1), self._device):
                        network.eval()
                        if stage.after_epoch is not None:
                            stage.after_epoch(in_order, state.epoch, epochs)
                    watched = len(held_out) > 0 and stage.watched
                    state.waited += 1
                    if watched:
                        row["validation"] = self._validation_loss(values, held_out)
                    if not watched or row["validation"] < state.best:
                        best = network_arrays(network, prefix="best.") if watched else Arrays()
                        state.best, state.waited = row.get("validation", np.inf), 0
                    state.history = (*state.history, {"epoch": float(state.epoch), **row})
                    state.seconds += time.perf_counter() - started
                    if path is not None:
                        write_checkpoint(
                            path, belongs_to=belongs_to, progress=state, network=network, best=best, stage=stage
                        )
                    losses = ", ".join(f"{name} {value:.4g}" for name, value in row.items())
                    ahead = (epochs - state.epoch) * (time.perf_counter() - started)
                    REPORT.info(
                        "%s: %s epoch %d of %d done, %s%s%s", type(self).__name__, stage.name, state.epoch, epochs, losses,
                        f"; about {spelt(ahead, digits=2)} left" if state.epoch < epochs else "",
                        "" if path is None else f"; checkpoint in {path}",
                    )  # fmt: skip
        if best:
            load_network(network, best, prefix="best.", what="The best epoch")
        network.eval()
        self._review_training(network, state)
        with torch.no_grad(), seeded(self._seed(INITIAL, 2), self._device):
            self._after_training(network, in_order)
        self.history_, self.pretraining_, self.training_seconds_ = state.history, state.earlier, state.seconds
        per_epoch = -(-min(len(train), self.max_windows or len(train)) // self.batch_size)
        self.steps_ = per_epoch * (len(state.history) + len(state.earlier))

    def _epochs_of(self, stage: Phase, windows: int) -> int:
        """Epochs of a stage: as many as it says, or more where they would be fewer than ``min_steps`` steps."""
        steps = -(-min(windows, self.max_windows or windows) // self.batch_size)
        return max(stage.epochs, -(-self.min_steps // steps)) if stage.epochs else 0

    def _epoch(
        self,
        values: torch.Tensor,
        starts: Starts,
        stage: Phase,
        purpose: tuple[int, ...],
        title: str,
        bar: Bar,
        *,
        left: int,
    ) -> dict[str, float]:
        """One pass over the training windows, or as many as an epoch has, in a fresh order; the mean of each loss."""
        sums: dict[str, float] = {}
        windows_seen, begun = 0, time.perf_counter()
        order = np.random.default_rng([self.random_state, *purpose]).permutation(starts)[: self.max_windows]
        with seeded(self._seed(*purpose), self._device) as generator:
            self.network_.train()
            for helper in stage.helpers.values():
                helper.train()
            steps = -(-len(order) // self.batch_size)
            for number, batch in enumerate(self._batches(values, order)):
                if number == 1:
                    steady_since = time.perf_counter()
                    if left and (first := steady_since - begun) > SLOW:
                        bound = f"{left} epoch{'s' * (left != 1)}: {spelt(left * steps * first, digits=2)} at most"
                        REPORT.info("%s: %s, the first of %d steps took %s; %s", type(self).__name__, title, steps, spelt(first, digits=2), bound)  # fmt: skip
                if number == ESTIMATED_AFTER and left:
                    each = (time.perf_counter() - steady_since) * steps / (number - 1)
                    REPORT.log(
                        logging.WARNING if left * each > LONG else logging.INFO,
                        "%s: %s, %d steps an epoch, about %s each; %d epoch%s, about %s in all", type(self).__name__, title, steps,
                        spelt(each, digits=2), left, "s" * (left != 1), spelt(left * each, digits=2),
                    )  # fmt: skip
                for name, loss in stage.step(batch, generator).items():
                    value = self._finite(float(loss.detach()), f"{name} in {title}, step {number + 1}")
                    sums[name] = sums.get(name, 0.0) + value * len(batch)
                windows_seen += len(batch)
                rate = windows_seen / (time.perf_counter() - begun)
                mean = next(iter(sums.values())) / windows_seen
                bar.advance(len(batch), note=f"{title}  loss {mean:.4g}  {rate:,.0f} windows/s")
        return {name: total / windows_seen for name, total in sums.items()}

    def _finite(self, value: float, where: str) -> float:
        if not np.isfinite(value):
            raise TrainingError(
                f"Training of {type(self).__name__} must have a finite loss. Got {value} as {where}: "
                f"lower learning_rate ({self.learning_rate:g}) or look for extreme values in the training rows."
            )
        return value

    def _validation_loss(self, values: torch.Tensor, held: Starts) -> float:
        total = 0.0
        with torch.no_grad(), seeded(self._seed(VALIDATION), self._device) as generator:
            self.network_.eval()
            for batch in self._batches(values, held):
                total += float(self._loss(self.network_, batch, generator)) * len(batch)
        return self._finite(total / len(held), "the validation loss")
