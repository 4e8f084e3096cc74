"""THOC against loops from its definitions; the losses by hand; training helps."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from naive_deep import dilated_gru, hierarchical_distance  # noqa: E402
from tisat.detectors import THOC  # noqa: E402
from tisat.detectors.networks.thoc import DilatedLayer, THOCNetwork, cosine_distance  # noqa: E402
from tisat.errors import ParameterError  # noqa: E402

QUICK = {"window": 16, "hidden": 8, "dilations": (1, 4), "n_clusters": (4, 3), "stride": 2}


@pytest.fixture
def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made = THOCNetwork(2, hidden=4, dilations=(1, 2, 4), n_clusters=(5, 3, 2), temperature=0.3).double()
        for parameter in made.parameters():
            parameter.data.add_(0.3 * torch.randn(parameter.shape))
        return made


def arrays(module):
    return {name: tensor.detach().numpy() for name, tensor in module.state_dict().items()}


@settings(max_examples=25, deadline=None)
@given(length=st.integers(1, 20), dilation=st.integers(1, 8), seed=st.integers(0, 99))
def test_a_dilated_layer_is_the_loop_that_looks_back_by_its_dilation(length, dilation, seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = DilatedLayer(2, 3, dilation=dilation).double()
        rows = torch.randn(2, length, 2, dtype=torch.float64)
    with torch.no_grad():
        found = layer(rows).numpy()
    for one, expected in zip(found, rows.numpy(), strict=True):
        np.testing.assert_allclose(one, dilated_gru(expected, arrays(layer.cell), dilation), atol=1e-12)


def test_the_summary_is_the_hierarchical_assignment_done_cluster_by_cluster(network):
    windows = torch.rand(2, 9, 2, dtype=torch.float64)
    with torch.no_grad():
        scales = network.scales(windows)
        summary = network.summary(scales)
        found = network.distances(summary).numpy()
    pairs = [
        [(one.weight.detach().numpy(), one.bias.detach().numpy()) for one in part]
        for part in (network.transforms, network.joins)
    ]
    centres = [one.detach().numpy() for one in network.centres]
    for b, t in ((0, 0), (1, 8), (0, 5)):
        features = [scale[b, t].numpy() for scale in scales]
        expected, shares = hierarchical_distance(features, centres, *pairs, network.temperature)
        assert found[b, t] == pytest.approx(expected, abs=1e-10)
        np.testing.assert_allclose(summary.shares[b, t].numpy(), shares, atol=1e-12)
    np.testing.assert_allclose(summary.shares.sum(dim=-1).numpy(), 1.0)


def test_features_of_a_row_do_not_depend_on_later_rows(network):
    windows = torch.rand(1, 12, 2, dtype=torch.float64)
    changed = windows.clone()
    changed[:, 8:] += 5.0
    with torch.no_grad():
        for before, after in zip(network.scales(windows), network.scales(changed), strict=True):
            assert torch.equal(before[:, :8], after[:, :8])
            assert not torch.equal(before[:, 8:], after[:, 8:])


def test_orthogonality_by_hand(network):
    with torch.no_grad():
        for centres in network.centres:
            centres.copy_(torch.eye(*centres.shape))
        # 5 centres in 4 dimensions: the last is 0, and misses its own 1; the other scales are orthonormal
        assert float(network.orthogonality()) == pytest.approx(1 / 3)
        network.centres[1][1] = network.centres[1][0]  # two equal ones: off-diagonals (1, 1), diagonal right
        assert float(network.orthogonality()) == pytest.approx((1 + 2) / 3)


def test_self_supervision_compares_each_scale_with_the_row_one_dilation_ahead(network):
    windows = torch.rand(3, 10, 2, dtype=torch.float64)
    with torch.no_grad():
        scales = network.scales(windows)
        expected = []
        for level, dilation in enumerate(network.dilations):
            weight, bias = network.forecasts[level].weight.numpy(), network.forecasts[level].bias.numpy()
            errors = [
                np.mean((weight @ scales[level][b, t].numpy() + bias - windows[b, t + dilation].numpy()) ** 2)
                for b in range(3)
                for t in range(10 - dilation)
            ]
            expected.append(np.mean(errors))
        assert float(network.self_supervision(scales, windows)) == pytest.approx(np.mean(expected))


def test_the_cosine_distance_is_exact_where_it_is_almost_nothing():
    a = torch.tensor([1.0, 1e-4])
    b = torch.tensor([1.0, 0.0])
    assert float(cosine_distance(a, b)) == pytest.approx(0.5e-8, rel=1e-3)  # 1 - cos is 0 in float32
    assert float(cosine_distance(b, -b)) == pytest.approx(2.0)
    assert float(cosine_distance(torch.zeros(2), b)) == pytest.approx(0.5)  # a dead feature: finite


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.sin(np.arange(500)[:, None] / np.array([5.0, 9.0])) + 0.05 * rng.standard_normal((500, 2))


def test_every_part_of_the_loss_falls(rows):
    detector = THOC(epochs=8, learning_rate=5e-3, **QUICK).fit(rows)
    first, last = detector.history_[0], detector.history_[-1]
    for part in ("loss", "one_class", "orthogonality", "self_supervision"):
        assert last[part] < first[part]


def test_an_anchored_window_has_no_level(rows):
    anchored, plain = (THOC(epochs=1, anchor=anchor, **QUICK).fit(rows) for anchor in ("mean", "none"))
    moved = rows + 0.3
    np.testing.assert_allclose(anchored.decision_function(moved), anchored.decision_function(rows), rtol=1e-3)
    assert not np.allclose(plain.decision_function(moved), plain.decision_function(rows), rtol=1e-2, equal_nan=True)
    assert (plain.network_.scale == 1).all()
    assert (anchored.network_.scale != 1).all()


def test_still_and_doubled_channels_leave_finite_scores(rows):
    awkward = np.column_stack([rows, rows[:, 0], np.full(len(rows), 3.0)])
    scores = THOC(epochs=2, **QUICK).fit(awkward).decision_function(awkward)
    assert np.isfinite(scores[QUICK["window"] - 1 :]).all()
    assert (scores[QUICK["window"] - 1 :] >= 0).all()


def test_bad_parameters_are_refused(rows):
    with pytest.raises(ParameterError, match="'n_clusters' parameter of THOC must have one number for each"):
        THOC(dilations=(1, 2)).fit(rows)
    with pytest.raises(ParameterError, match="'dilations' parameter of THOC must be below the window"):
        THOC(**{**QUICK, "dilations": (1, 16)}).fit(rows)
