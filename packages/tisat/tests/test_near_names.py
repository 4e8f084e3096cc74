"""Did you mean: one helper for every list of names."""

import pytest

import tisat
from tisat import registry
from tisat.errors import ParameterError


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("iforest", "isolation-forest"), ("isolation_forest", "isolation-forest"), ("IsolationForest", "isolation-forest"), ("KNN", "nearest-neighbors"), ("prysm", "prism"), ("VAR", "vector-autoregression")],
)  # fmt: skip
def test_a_detector_by_another_name(typed, meant):
    for call in (tisat.Watch, tisat.make):
        with pytest.raises(ParameterError, match=f"Did you mean '{meant}'\\?$"):
            call(typed)


def test_rules_methods_and_parameters_too():
    with pytest.raises(ParameterError, match="Did you mean 'excess'"):
        tisat.Watch("last-value", rule="exces")
    with pytest.raises(ParameterError, match="Did you mean 'event'"):
        tisat.spd_score([0, 1], [0.0, 1.0], delta_max=1, counting="evnt")
    with pytest.raises(TypeError, match="Did you mean 'window'"):
        tisat.make("pca", wndow=3)


def test_nothing_near_is_nothing_said():
    with pytest.raises(ParameterError, match=r"instead\. One of your own"):
        tisat.Watch("qqqqqq")


def test_aliases_lead_to_registered_names():
    assert set(registry.ALIASES.values()) <= set(registry.names())
    assert not set(registry.ALIASES) & set(registry.names())
