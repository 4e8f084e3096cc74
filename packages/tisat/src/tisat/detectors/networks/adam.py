"""Adam, the optimiser of every network here: the arithmetic of ``torch.optim.Adam``, bit for bit, without what that imports.

The first optimiser of torch's own that a process makes imports torch's compiler: two seconds of processor time, and small
networks train in less. It is used as torch's are, and torch's may be used in its place. ``packages/tisat/tests/networks/test_adam.py`` holds the two
against each other.

References
----------
Kingma, Ba: Adam: A Method for Stochastic Optimization, ICLR 2015, algorithm 1; the L2 penalty is added to the gradient.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tisat.utils.types import JsonDict, JsonMap, Options, Params


class Optimizer(Protocol):
    """What the training loop asks of an optimiser: torch's have it too."""

    param_groups: list[JsonDict]
    state: Any

    def zero_grad(self) -> None:
        """Forget the gradients."""

    def step(self) -> Any:
        """Change the parameters that have a gradient."""

    def state_dict(self) -> JsonDict:
        """Where it stands: tensors and plain values by the number of the parameter."""

    def load_state_dict(self, state_dict: JsonDict) -> None:
        """Go on from there."""


class Adam:
    """Steps of ``lr`` along the mean gradient in units of its root mean square.

    Parameters
    ----------
    parameters : iterable of Parameter
    lr : float
        The learning rate, kept in ``param_groups`` where schedules change it.
    betas : (float, float)
        How much of the old mean, and of the old mean square, stays at each step.
    weight_decay : float
        Coefficient of the L2 penalty.
    fused : bool
        All parameters in one call: quicker, with other last bits.

    Examples
    --------
    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = Adam([weight], lr=0.1)
    >>> (weight**2).sum().backward()
    >>> optimizer.step()
    >>> round(weight.item(), 6)
    0.9
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
        fused: bool = False,
    ) -> None:
        plain = {"lr": lr, "betas": betas, "eps": 1e-8, "weight_decay": weight_decay, "fused": fused}
        self.param_groups: list[Params] = [{"params": list(parameters), **plain}]
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    def step(self) -> None:
        """Change the parameters that have a gradient."""
        group = self.param_groups[0]
        moved = [parameter for parameter in group["params"] if parameter.grad is not None]
        for parameter in moved:
            if parameter not in self.state:
                self.state[parameter] = {
                    "step": self._count(parameter),
                    "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
                    "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
                }
        if not moved:
            return
        with torch.no_grad():
            if not group["fused"]:
                for parameter in moved:
                    _step_one(parameter, **self.state[parameter], group=group)
                return
            steps, means, squares = (
                [self.state[one][name] for one in moved] for name in ("step", "exp_avg", "exp_avg_sq")
            )
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                moved, [one.grad for one in moved], means, squares, [], steps,
                lr=group["lr"], beta1=group["betas"][0], beta2=group["betas"][1], weight_decay=group["weight_decay"],
                eps=group["eps"], amsgrad=False, maximize=False,
            )  # fmt: skip

    def _count(self, parameter: nn.Parameter) -> Tensor:
        """The number of steps a parameter has taken, none yet; the fused call reads it where the parameter is."""
        return torch.zeros((), device=parameter.device if self.param_groups[0]["fused"] else "cpu")

    def state_dict(self) -> JsonDict:
        """Where it stands, with parameters by their number."""
        group = self.param_groups[0]
        numbers = {parameter: number for number, parameter in enumerate(group["params"])}
        return {
            "state": {numbers[parameter]: dict(entries) for parameter, entries in self.state.items()},
            "param_groups": [{**group, "params": list(numbers.values())}],
        }

    def load_state_dict(self, state_dict: JsonMap) -> None:
        """Go on from there."""
        parameters = self.param_groups[0]["params"]
        self.param_groups[0].update({**state_dict["param_groups"][0], "params": parameters})
        self.state = {}
        for number, entries in state_dict["state"].items():
            parameter = parameters[number]
            moments = {name: entries[name].to(parameter, copy=True) for name in ("exp_avg", "exp_avg_sq")}
            self.state[parameter] = {"step": self._count(parameter).fill_(entries["step"]), **moments}


def _step_one(parameter: nn.Parameter, step: Tensor, exp_avg: Tensor, exp_avg_sq: Tensor, *, group: Options) -> None:
    """One step of one parameter; the order of operations is torch's."""
    beta1, beta2 = group["betas"]
    gradient = parameter.grad
    assert gradient is not None, "only what has a gradient moves"
    if group["weight_decay"]:
        gradient = gradient.add(parameter, alpha=group["weight_decay"])
    step += 1
    taken = step.item()
    exp_avg.lerp_(gradient, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    root = (exp_avg_sq.sqrt() / (1 - beta2**taken) ** 0.5).add_(group["eps"])
    parameter.addcdiv_(exp_avg, root, value=-(group["lr"] / (1 - beta1**taken)))
