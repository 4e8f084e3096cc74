"""Our Adam against torch's: the same bits after every step, and from the same state."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from tisat.detectors import make
from tisat.detectors.networks.adam import Adam

OPTIONS = [
    {"lr": 1e-3},
    {"lr": 3e-2, "weight_decay": 0.1},
    {"lr": 1e-3, "betas": (0.5, 0.99)},
    {"lr": 1e-3, "fused": True},
    {"lr": 3e-2, "weight_decay": 0.1, "fused": True},
]


def twins():
    torch.manual_seed(0)
    ours = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    theirs = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def descend(network, optimizer, number):
    optimizer.zero_grad()
    x = torch.randn(11, 5, generator=torch.Generator().manual_seed(number))
    out = network(x) if number % 3 else network[1](network[0](x))  # every third step the last layer has no gradient
    out.square().mean().backward()
    optimizer.step()


def same(ours, theirs):
    return all(torch.equal(a, b) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


@pytest.mark.parametrize("options", OPTIONS)
def test_the_same_bits_as_torch(options):
    ours, theirs = twins()
    mine, torchs = Adam(ours.parameters(), **options), torch.optim.Adam(theirs.parameters(), **options)
    for number in range(20):
        if number == 10:
            for optimizer in (mine, torchs):
                optimizer.param_groups[0]["lr"] *= 0.5
        descend(ours, mine, number)
        descend(theirs, torchs, number)
        assert same(ours, theirs), number


@pytest.mark.parametrize("options", OPTIONS)
def test_a_state_goes_on_where_it_stood(options):
    ours, theirs = twins()
    mine, torchs = Adam(ours.parameters(), **options), torch.optim.Adam(theirs.parameters(), **options)
    for number in range(5):
        descend(ours, mine, number)
        descend(theirs, torchs, number)
    resumed = Adam(ours.parameters(), lr=1.0, fused=not options.get("fused", False))
    resumed.load_state_dict(mine.state_dict())
    mine.param_groups[0]["lr"] = 0.0  # and the state is a copy
    for number in range(5, 10):
        descend(ours, resumed, number)
        descend(theirs, torchs, number)
        assert same(ours, theirs), number


def test_a_cleared_state_starts_again():
    ours, theirs = twins()
    mine = Adam(ours.parameters(), lr=1e-2)
    descend(ours, mine, 1)
    mine.state.clear()
    theirs.load_state_dict(ours.state_dict())
    torchs = torch.optim.Adam(theirs.parameters(), lr=1e-2)
    for number in (2, 4):
        descend(ours, mine, number)
        descend(theirs, torchs, number)
    assert same(ours, theirs)


def test_training_does_not_import_the_compiler(monkeypatch):
    def made(*_, **__):
        raise AssertionError("an optimiser of torch's own imports torch's compiler: use tisat.detectors.networks.adam")

    monkeypatch.setattr(torch.optim.Optimizer, "__init__", made)
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # to import it is then an error
    make("lstm", window=5, epochs=1, min_steps=2).fit(np.random.default_rng(0).random((60, 2)))
    sources = (Path(__file__).parents[2] / "src" / "tisat").rglob("*.py")
    assert [file.name for file in sources if "torch.optim" in file.read_text()] == ["adam.py"]  # where the words are
