"""As a user: fit, then alarm on a file of five modest faults, with and without another one half an hour after it began."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tisat.cli import app
from tisat.datasets.synthetic import make_pump

SPAN = 60
LATER = {500: "flow", 900: "motor_current", 1300: "pressure", 1700: "bearing_temperature", 2100: "vibration"}


def write(path, series, values):
    times = np.datetime_as_string(series.timestamps, unit="s")
    rows = [",".join([time, *map(repr, row)]) for time, row in zip(times, values.tolist(), strict=True)]
    path.write_text("\n".join([",".join(["time", *series.channels]), *rows]) + "\n")


def run(*arguments):
    told = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert told.exit_code == 0, told.output
    return told.stdout


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A model of five days of the pump; later rows with five faults, the same with one more at row 30, and with an absurd value."""
    root = tmp_path_factory.mktemp("early")
    pump = make_pump(n_train=5 * 1440, n_test=2400, faults=(), valve=True, random_state=4)
    write(root / "good.csv", pump.train, pump.train.values)
    c = pump.test.channels.index
    values = np.array(pump.test.values)
    for start, channel in LATER.items():
        here = values[start : start + SPAN, c(channel)]
        here[:] = {"flow": 0.85 * here, "pressure": here - 0.3, "bearing_temperature": here + 2.5}.get(
            channel, 1.25 * here
        )
    write(root / "alone.csv", pump.test, values)
    for name, rows, channel, factor in (
        ("fault", slice(30, 230), "vibration", 1.5),
        ("absurd", slice(250, 251), "flow", 1e30),
    ):
        early = values.copy()
        early[rows, c(channel)] *= factor
        write(root / f"{name}.csv", pump.test, early)
    run("fit", root / "good.csv", "--out", root / "pump.tisat", "--no-control")  # six faults in two days are no budget
    return root


def found(root, name):
    """The row of the alarm of each later fault, and the channel it names first."""
    told = json.loads(run("alarm", "--model", root / "pump.tisat", "--budget", "1/day", root / f"{name}.csv", "--json"))
    alarms = {start: [one for one in told["alarms"] if start <= one["raised"] < start + SPAN] for start in LATER}
    return {start: (some[0]["raised"], next(iter(some[0]["channels"]))) for start, some in alarms.items() if some}


@pytest.mark.parametrize("early", ["fault", "absurd"])
def test_a_fault_in_the_first_rows_hides_none_of_the_next(root, early):
    alone, after = found(root, "alone"), found(root, early)
    named = {start: channel for start, (_, channel) in alone.items()}
    assert named.items() <= LATER.items()
    assert len(named) >= 4  # the fourth in 1,700 rows is found as it ends: momentary views have a past of 1,000
    assert after.keys() == named.keys()
    assert sum(after[start][1] != channel for start, channel in named.items()) <= 1  # docs/log.md: the shorter past
