"""Suppressed alarms: marked where every main reason is covered, never dropped."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tisat import Series, Watch
from tisat.alarms.alarms import Alarm
from tisat.alarms.explanation import Reason
from tisat.alarms.files import read_active
from tisat.alarms.suppression import Suppression, suppressed_by
from tisat.cli import app
from tisat.errors import ParameterError


def alarm(*reasons):
    return Alarm(10, 9, 12, 5.0, 1.0, "excess", "1/day", {}, reasons=tuple(reasons))


FLOW_UP = Reason("flow", 0.6, 53.0, 50.0, 0.5)
HEAT = Reason("heat", 0.4, 61.0, 60.0, 0.2)
SMALL = Reason("power", 0.1, 9.0, 5.0, 0.2)


@pytest.mark.parametrize(
    ("reasons", "rules", "covered"),
    [
        ([FLOW_UP], ["flow"], True),
        ([FLOW_UP], ["flow:up"], True),
        ([FLOW_UP], ["flow:down"], False),
        ([FLOW_UP], ["flow:2.5"], False),  # a change of 3 is worth an alarm
        ([FLOW_UP], ["flow:3.5"], True),
        ([FLOW_UP], ["flow:up:3.5"], True),
        ([FLOW_UP], ["flow:down:3.5"], False),
        ([FLOW_UP, HEAT], ["flow"], False),  # another main reason
        ([FLOW_UP, HEAT], ["flow:up", "heat:2"], True),
        ([FLOW_UP, SMALL], ["flow"], True),  # a side reason does not keep it
        ([Reason("flow", 1.0, None, 50.0, 0.5)], ["flow:up"], False),  # missing: cannot be compared
        ([Reason("flow", 1.0, None, 50.0, 0.5)], ["flow"], True),
        ([], ["flow"], False),
        ([FLOW_UP], ["flow:7%"], True),  # 3 of 50 is 6 %
        ([FLOW_UP], ["flow:5%"], False),
        ([FLOW_UP], ["fl*:up"], True),
        ([FLOW_UP, HEAT], ["*:up"], True),
        ([Reason("flow", 1.0, 50.0, 50.0, 0.5)], ["flow:up"], False),  # it moved neither way
    ],
)
def test_what_is_covered(reasons, rules, covered):
    assert bool(suppressed_by(alarm(*reasons), [Suppression.parse(rule) for rule in rules])) is covered


def test_one_reason_is_covered_or_not():
    missing = Reason("flow", 1.0, None, 50.0, 0.5)
    rules = [Suppression.parse(text) for text in ("heat", "flow", "flow:up", "flow:down", "flow:3")]
    assert [rule.covers(FLOW_UP) for rule in rules] == [False, True, True, False, False]
    assert [rule.covers(missing) for rule in rules] == [False, True, False, False, False]
    little = Reason("flow", 1.0, 50.5, 50.0, 0.5)
    assert [rule.covers(little) for rule in rules] == [False, True, True, False, True]


def test_it_is_said_and_read_back():
    text = suppressed_by(alarm(FLOW_UP, HEAT), [Suppression.parse("flow:up:3,5"), Suppression.parse("heat")])
    assert text == "flow up by less than 3.5; heat"
    for wrong in ("flow:sideways", "flow:-1", "flow:up:nan", "", ":up", "*", "flow:up:down", "flow:3:4", "flow:3:4%"):
        with pytest.raises(ParameterError, match="must be CHANNEL, CHANNEL:up") as refused:
            Suppression.parse(wrong)
        assert refused.value.parameter == "suppress"
    with pytest.raises(ParameterError, match=r"must name a channel of the model: a, b. Got 'c'"):
        Suppression.parse("c", channels=("a", "b"))


def test_at_the_command_line_they_stay_visible_and_are_not_counted(tmp_path):
    rng = np.random.default_rng(0)
    names = ("flow", "heat")
    Watch("linear-mean", budget="1/500 rows").fit(Series(rng.normal(size=(3000, 2)), channels=names)).save(
        tmp_path / "m.tisat"
    )
    rows = rng.normal(size=(700, 2))
    rows[200:210, 0] += 15.0
    rows[500:510, 1] -= 15.0
    (tmp_path / "new.csv").write_text(
        "flow,heat\n" + "\n".join(",".join(map(str, row)) for row in rows.tolist()) + "\n"
    )
    arguments = ["alarm", str(tmp_path / "new.csv"), "--model", str(tmp_path / "m.tisat"), "--suppress", "flow:up"]
    table = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "a.csv")])
    assert table.exit_code == 0, table.output
    assert "of them suppressed" in table.output
    assert "suppressed: flow up" in table.output
    document = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    marked = {one["raised"]: one["suppressed"] for one in document["alarms"]}
    assert marked[200] == "flow up"
    assert marked[500] == ""
    active = read_active(tmp_path / "a.csv", length=700)
    assert not active[200]
    assert active[500]
    wrong = CliRunner().invoke(app, [*arguments[:-1], "flw"])
    assert isinstance(wrong.exception, ParameterError)
