import numpy as np
import pytest

from tisat import Series, Watch, scan
from tisat.errors import InputError, ParameterError
from tisat.metrics import count_alarms, count_raises, evaluate_alarms
from tisat.metrics.alarm_evaluation import AlarmEvaluation, AlarmRow

LABELS = np.zeros(5000, dtype=int)
for start in (600, 1700, 2800, 3900):
    LABELS[start : start + 40] = 1


def test_good_alarms_beat_the_baselines_and_rotated_ones_do_not():
    good = np.zeros(5000, dtype=bool)
    good[[603, 1705, 2801, 3900, 4500]] = True
    found = evaluate_alarms(LABELS, good, delta_max=20)
    assert found.rows[0].detected == count_alarms(LABELS, good, delta_max=20).true_alarms == 4
    assert found.rows[0].false_alarms == 1
    assert found.beats_baselines
    shifted = evaluate_alarms(LABELS, np.roll(good, 300), delta_max=20)
    assert shifted.rows[0].detected == 0
    assert not shifted.beats_baselines


def test_the_rotated_baseline_raises_as_many_alarms():
    mask = np.zeros(5000, dtype=bool)
    mask[::500] = True
    found = evaluate_alarms(np.zeros(5000), mask, delta_max=20)
    assert found.rows[1].false_alarms == found.rows[0].false_alarms == 10
    assert np.isnan(found.rows[0].event_f1), "no events, no F1"


def test_always_on_is_charged_every_delta_max():
    found = evaluate_alarms(LABELS, np.ones(5000, dtype=bool), delta_max=20)
    assert found.rows[0].false_alarms == found.rows[2].false_alarms > 200


def test_as_good_as_the_best_baseline_is_not_better():
    counts = count_alarms([0, 1], [0, 1], delta_max=1)
    rows = [AlarmRow("", 0.0, 0.0, 0.0, f1, 0.0) for f1 in (0.6, 0.5, 0.4)]
    assert AlarmEvaluation(counts, tuple(rows)).beats_baselines
    assert not AlarmEvaluation(counts, (rows[1], rows[1], rows[2])).beats_baselines
    assert not AlarmEvaluation(counts, (rows[1], rows[2], rows[0])).beats_baselines


def test_alarms_of_another_length_are_refused():
    with pytest.raises(InputError, match="same length"):
        evaluate_alarms(LABELS, np.ones(3), delta_max=20)


def test_an_alarm_that_stays_on_is_counted_again_and_the_words_say_so():
    """One false alarm of 100 rows read as '4 false alarms'."""
    y, on = np.zeros(1000, dtype=int), np.zeros(1000, dtype=int)
    y[300:310] = on[302:325] = on[600:700] = 1
    counts = evaluate_alarms(y, on, delta_max=30).counts
    assert (counts.n_false_alarms, counts.n_lasting) == (4, 3)
    assert "1 false alarm and 3 more for alarms that stayed on (" in str(counts)
    both = evaluate_alarms([y, y], [on, on], delta_max=30).counts
    assert "2 false alarms and 6 more for alarms that stayed on (" in str(both)
    assert count_raises(y, [600, 601, 602], delta_max=30).n_lasting == 0  # each row given is an alarm


def test_a_duration_takes_the_times_of_alarms_or_labels():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    clock = np.datetime64("2026-01-05T00:00") + np.arange(5000) * np.timedelta64(60, "s")
    test = Series(rng.normal(size=(5000, 2)) + 20.0 * LABELS[:, None], timestamps=clock)
    alarms = Watch("last-value", budget="1/1000 rows").fit(rng.normal(size=(5000, 2))).alarms(test, any_period=True)
    labels, mask = pd.Series(LABELS, index=pd.DatetimeIndex(clock, tz="UTC")), alarms.active
    wanted = str(evaluate_alarms(LABELS, mask, delta_max="20min", timestamps=clock))
    assert wanted == str(evaluate_alarms(LABELS, alarms, delta_max="20min"))
    assert wanted == str(evaluate_alarms(labels, mask, delta_max="20min"))
    both = evaluate_alarms([LABELS, LABELS], [alarms, alarms], delta_max="20min")
    assert both.counts.n_events == 8
    assert evaluate_alarms(LABELS, scan(test, "last-value"), delta_max="20min").counts.n_events == 4
    for without in (mask, [mask, mask]):
        with pytest.raises(ParameterError, match="where there are no timestamps"):
            evaluate_alarms([LABELS, LABELS] if isinstance(without, list) else LABELS, without, delta_max="20min")
