"""What TiSAT learns: that training pays, what is left out where it does not, and that a killed fit goes on."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tisat.detectors import TiSAT  # noqa: E402
from tisat.detectors.loading import load  # noqa: E402
from waves import waves  # noqa: E402

TINY = TiSAT._test_params()


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def rows():
    return waves()


def test_the_linear_skip_is_where_training_starts(rows):
    detector = TiSAT(**{**TINY, "epochs": 1, "learning_rate": 1e-12, "linear_skip": True}).fit(rows, holdout=0.0)
    window = rows[:16]
    skip = detector.network_.linear_skip
    scaled = (window - window[-1]) / detector.span_
    expected = np.einsum("lc,cl->c", scaled, skip.weight[:, :, 0].numpy()) + skip.bias[0].numpy()
    found = detector._forecast_windows(window[None])[0, 0]
    np.testing.assert_allclose(found, window[-1] + detector.span_ * expected, rtol=1e-5)


def one_step(detector, rows):
    """Observed minus forecast, one row ahead."""
    return detector._window_residuals(rows, every=1)[:, 0]


@pytest.mark.slow
def test_training_beats_the_untrained_network_and_the_last_value():
    train, test = waves(4000, channels=2), waves(600, seed=8, channels=2)
    size = {"window": 32, "token": 16, "d_model": 16, "n_heads": 2, "d_ff": 32, "linear_skip": False}
    trained = TiSAT(**size, epochs=8, decay=0.9, learning_rate=3e-3).fit(train)
    untrained = TiSAT(**size, epochs=1, learning_rate=1e-12).fit(train)
    errors = {name: (one_step(d, test) ** 2).mean() for name, d in (("trained", trained), ("untrained", untrained))}
    assert errors["trained"] < 0.5 * errors["untrained"]
    assert errors["trained"] < (np.diff(test, axis=0)[31:] ** 2).mean()


def logistic(length, *, seed):
    """Two chaotic channels whose next value is a parabola of the last: a line says nothing about it."""
    rows = np.empty((length, 2))
    rows[0] = np.random.default_rng(seed).uniform(0.2, 0.8, 2)
    for t in range(1, length):
        rows[t] = 3.9 * rows[t - 1] * (1 - rows[t - 1])
    return rows


@pytest.mark.slow
def test_the_transformer_learns_what_a_line_cannot_say():
    train, test = logistic(3000, seed=0), logistic(500, seed=1)
    size = {"window": 8, "token": 4, "d_model": 16, "n_heads": 2, "d_ff": 32, "encoder_layers": 1, "decoder_layers": 1}
    size |= {"lookahead": 1}  # five steps ahead chaos is noise
    detector = TiSAT(**size, epochs=12, decay=0.8, learning_rate=3e-3, dropout=0.0).fit(train)
    learned = (one_step(detector, test) ** 2).mean()
    torch.nn.init.zeros_(detector.network_.projection.weight)  # the linear skip alone
    torch.nn.init.zeros_(detector.network_.projection.bias)
    assert learned < 0.5 * (one_step(detector, test) ** 2).mean()


@pytest.mark.slow
@pytest.mark.parametrize("epochs_before_the_kill", [1, 3])
def test_a_fit_that_is_killed_goes_on_to_the_same_model(tmp_path, epochs_before_the_kill):
    np.savetxt(tmp_path / "train.csv", waves(3000), delimiter=",", header="a,b,c", comments="")
    command = [
        sys.executable,
        "-m",
        "tisat",
        "fit",
        "--detector",
        "tisat",
        "--train",
        "train.csv",
        "--set",
        "window=32",
    ]
    command += ["--set", "epochs=5", "--set", "patience=9"]

    def run(name, *options):
        return subprocess.Popen([*command, "--out", f"{name}.tisat", *options], cwd=tmp_path)

    assert run("whole").wait() == 0
    checkpoint = tmp_path / "run.checkpoint"
    started = run("killed", "--checkpoint", checkpoint.name)
    written = set()
    while len(written) < epochs_before_the_kill:
        assert started.poll() is None, "it ended before it could be killed"
        if checkpoint.exists():
            written.add(checkpoint.stat().st_mtime_ns)
        time.sleep(0.005)
    started.kill()  # SIGKILL: no clean-up of any kind
    started.wait()
    assert not (tmp_path / "killed.tisat").exists()
    assert run("killed", "--checkpoint", checkpoint.name, "--resume").wait() == 0
    whole, resumed = (load(tmp_path / f"{name}.tisat") for name in ("whole", "killed"))
    for name, weight in whole.network_.state_dict().items():
        torch.testing.assert_close(resumed.network_.state_dict()[name], weight, rtol=0, atol=0)
    rows = waves(300, seed=4)
    np.testing.assert_array_equal(whole.decision_function(rows), resumed.decision_function(rows))


def test_a_transformer_that_earns_nothing_is_left_out_and_the_line_forecasts(rows):
    kept, left = (TiSAT(**{**TINY, "epochs": 1}, earns=earns).fit(rows) for earns in (0.0, 0.99))
    line = TiSAT(**{**TINY, "epochs": 0}).fit(rows)
    assert float(left.network_.used) == 0.0
    np.testing.assert_allclose(left.decision_function(rows), line.decision_function(rows), rtol=1e-6)
    assert float(kept.network_.used) == 1.0  # any gain, or none lost, is enough for it
