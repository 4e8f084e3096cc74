"""Row by row: a monitor, kept in a file, that continues after a restart as if nothing had happened."""

import tempfile
from pathlib import Path

from tisat import Monitor, Watch
from tisat.datasets.synthetic import make_pump

state = Path(tempfile.mkdtemp()) / "pump.state"
pump = make_pump(n_train=4000, n_test=900, faults=("vibration doubled",))
watch = Watch("mahalanobis", budget="1/day").fit(pump.train)

monitor = watch.monitor(name="pump 7")
for row, time in zip(pump.test.values[:500], pump.test.timestamps[:500], strict=True):
    monitor.update(row, time)
monitor.snapshot(state)  # the process ends here

monitor = Monitor.load(watch, state)
for row, time in zip(pump.test.values[500:], pump.test.timestamps[500:], strict=True):
    verdict = monitor.update(dict(zip(pump.test.channels, row, strict=True)), time)
    if verdict.raised:
        print(verdict.alarm)
print(monitor.tally)
