"""The promise on real data: budgets kept on the end of training splits that nothing else saw."""

import os

import pytest

from tisat_bench.false_alarm_figures import study

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def _needs_data():
    if not os.environ.get("TISAT_DATA"):
        pytest.skip("TISAT_DATA does not name the folder of the data sets")


@pytest.mark.parametrize("rule", ["excess", "paper"])
def test_auto_keeps_its_target_in_nine_of_ten_entities(rule):
    found = study(["smd", "msl", "smap"], rules=[rule], methods=["auto"])
    assert len(found) > 50
    assert sum(one.kept for one in found) >= 0.9 * len(found)
