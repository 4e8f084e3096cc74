"""Words change thresholds, silence does not: a bounded record of episodes, labels, and proposals with consequences."""

from dataclasses import replace

import numpy as np
import pytest

from tisat.alarms import calibrate, make_rule
from tisat.alarms.episode_log import EpisodeRecord, propose
from tisat.alarms.result import expanded
from tisat.errors import ArtefactError, InputError, ParameterError


def recorded(values, **options):
    record = EpisodeRecord(**options)
    for value in values:
        record.step(float(value))
    return record


@pytest.fixture(scope="module")
def calibration():
    return calibrate(make_rule("excess"), np.random.default_rng(0).exponential(size=9000), "1/2500 rows")


def operation(calibration, peaks, *, rows=20_000):
    """A quiet statistic with episodes of given heights, in units of the threshold."""
    statistic = np.zeros(rows)
    for i, peak in enumerate(peaks):
        statistic[1000 * (i + 1) : 1000 * (i + 1) + 40] = peak * calibration.threshold
    record = EpisodeRecord.beside(calibration)
    for value in statistic:
        record.step(value)
    return record


def test_the_record_keeps_the_highest_episodes_and_its_size():
    rng = np.random.default_rng(1)
    peaks = rng.exponential(size=500) + 1.0
    values = np.zeros(1000)
    values[::2] = peaks
    record = recorded(values, mark=0.5, room=40)
    assert record.rows == 1000
    assert len(record.episodes) == 40
    kept = sorted(one.peak for one in record.episodes)
    assert [peak for peak in sorted(peaks) if peak > record.mark] == [peak for peak in kept if peak > record.mark]
    assert {array.shape for array in record.state().values()} == {(40,), (1,), (3,)}


def test_it_goes_on_after_a_restart_as_if_nothing_had_happened():
    values = np.abs(np.random.default_rng(2).normal(size=300)).cumsum() % 3
    values[50:53] = np.nan
    whole = recorded(values, mark=1.0, room=16)
    part = recorded(values[:120], mark=1.0, room=16)
    fresh = EpisodeRecord(mark=0.0, room=16)
    fresh.restore(part.state())
    for value in values[120:]:
        fresh.step(float(value))
    assert fresh.episodes == whole.episodes
    assert fresh.mark == whole.mark
    for change in (
        {"label": np.full(16, 9)},
        {"count": np.array([99, 1, 1])},
        {"peak": np.full(16, np.nan)},
        {"mark": np.zeros(2)},
    ):
        with pytest.raises(ArtefactError, match="record of episodes"):
            EpisodeRecord(mark=0.0, room=16).restore({**part.state(), **change})


def test_silence_changes_nothing_upwards(calibration):
    loud = propose(calibration, operation(calibration, [3.0] * 10))
    quiet = propose(calibration, operation(calibration, []))
    assert loud.unlabelled == 10
    assert loud.after.threshold <= calibration.threshold  # ten alarms without a word do not desensitise it
    assert quiet.after.supported > 3 * calibration.supported
    assert loud.before is calibration
    assert not loud.new_normal


def test_episodes_below_the_threshold_are_normal_unless_somebody_says_otherwise(calibration):
    record = operation(calibration, [0.8, 0.9, 0.95])
    assert len(record.episodes) == 3
    for label, rows, levels in (("unlabelled", 20_000, 3), ("new normal", 20_000, 3), ("true", 19_960, 2)):
        record.label(1010, label)
        proposal = propose(calibration, record)
        assert (proposal.rows, len(proposal.after.normal.levels[-1])) == (rows, levels)


def test_who_says_that_an_alarm_was_false_is_not_given_more_of_them(calibration):
    record = operation(calibration, [1.05, 0.97])
    lower = propose(calibration, record)
    assert lower.after.threshold < calibration.threshold
    assert f"It is lower: {lower.added} more rise" in str(lower)
    for word in ("false", "expected"):
        record.label(1010, word)
        same = propose(calibration, record)
        assert same.after is calibration
    assert f"would stay at {calibration.threshold:.4g}" in str(same)


def test_every_alarm_of_a_threshold_that_has_sunk_can_be_labelled():
    made = calibrate(make_rule("excess"), np.random.default_rng(0).exponential(size=9000), "1/1000 rows", control=True)
    lowest = made.control.bounds[0]
    assert lowest < made.threshold
    record = EpisodeRecord.beside(made)
    record.run([0.0] * 50 + [1.001 * lowest] * 5 + [0.0] * 50)
    assert record.label(52, "false").label == "false"


def test_an_episode_that_reaches_the_threshold_is_an_alarm(calibration):
    assert propose(calibration, operation(calibration, [1.0, 0.99])).unlabelled == 1


def test_where_normal_data_is_silent_the_mark_is_half_the_least_threshold():
    for name, floor in (("excess", 1.0), ("threshold", 0.7)):
        silent = calibrate(make_rule(name), np.zeros(600), "1/100 rows")
        assert silent.normal.floor == floor
        assert EpisodeRecord.beside(silent).mark == expanded(0.5 * floor, silent.compression)


def test_false_alarms_raise_the_threshold_and_true_ones_do_not(calibration):
    false, true = operation(calibration, [1.3] * 12), operation(calibration, [1.3] * 12)
    for episode in false.episodes:
        false.label(episode.start + 3, "false")
    for episode in true.episodes:
        true.label(episode.start + 3, "true")
    raised, same = propose(calibration, false), propose(calibration, true)
    assert raised.after.threshold > calibration.threshold
    assert raised.avoided > 0
    assert f"avoided {raised.avoided} of 12 false alarms" in str(raised)
    assert same.after.threshold <= calibration.threshold
    assert "missed 0 of 12 true alarms" in str(same)
    assert same.rows == 20_000 - 12 * 40


def test_expected_and_new_normal(calibration):
    record = operation(calibration, [1.5, 1.5])
    assert record.label(1010, "expected") == record.episodes[0]
    assert record.episodes[0].label == "expected"
    record.label(2010, "new normal")
    proposal = propose(calibration, record, budget="1/5000 rows")
    assert proposal.false_alarms == 1
    assert proposal.new_normal
    assert "fit the detector again" in str(proposal)
    assert proposal.after.target == 5000
    assert proposal.rows == 20_000 - 40


def test_what_cannot_be_is_refused_in_a_sentence(calibration):
    record = operation(calibration, [1.5])
    with pytest.raises(InputError, match="row 5000, where nothing rose"):
        record.label(5000, "false")
    with pytest.raises(ParameterError, match="'label'"):
        record.label(1010, "maybe")
    paper = calibrate(make_rule("paper"), np.random.default_rng(0).exponential(size=900), "1/100 rows")
    with pytest.raises(ParameterError, match="by 'episodes'"):
        propose(paper, record)


def test_without_normal_levels_the_mark_is_half_the_threshold(calibration):
    record = EpisodeRecord.beside(replace(calibration, normal=None), room=3)
    assert record.mark == 0.5 * calibration.threshold
    assert record.state()["peak"].shape == (3,)


def test_the_threshold_rule_has_its_record_in_its_own_unit():
    scores = 5.0 + np.random.default_rng(0).exponential(size=9000)
    calibration = calibrate(make_rule("threshold"), scores, "1/2500 rows")
    record = EpisodeRecord.beside(calibration)
    assert 0 < record.mark <= calibration.threshold
    for value in [0.1, calibration.threshold * 1.2, 0.1] * 30:
        record.step(value)
    for episode in record.episodes:
        record.label(episode.start, "false")
    proposal = propose(calibration, record)
    assert proposal.after.threshold > calibration.threshold
    levels = [expanded(level, calibration.compression) for level in proposal.after.normal.levels[-1]]
    assert levels == pytest.approx([calibration.threshold * 1.2] * 30)
