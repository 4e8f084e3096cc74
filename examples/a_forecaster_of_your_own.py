"""A forecaster of your own as a detector: fit and predict are enough; here, a line through the last rows, with an interval."""

import warnings

import numpy as np

from tisat import Watch
from tisat.datasets.synthetic import make_pump
from tisat.detectors import from_forecaster


class Line:
    """The next row on the line through the window, within as much as the window strays from it."""

    def fit(self, parts):
        """Learn nothing: parts are the arrays (T, C) of normal rows."""
        return self

    def predict(self, windows):
        """Lower and upper forecast (n, C) of the rows after windows (n, window, C)."""
        rows = np.arange(windows.shape[1], dtype=float)
        design = np.column_stack([np.ones_like(rows), rows])
        solved = np.linalg.pinv(design) @ windows.transpose(1, 0, 2).reshape(len(rows), -1)
        straying = (windows.transpose(1, 0, 2).reshape(len(rows), -1) - design @ solved).std(axis=0)
        ahead = (solved[0] + len(rows) * solved[1]).reshape(len(windows), -1)
        return ahead - straying.reshape(ahead.shape), ahead + straying.reshape(ahead.shape)


warnings.simplefilter("ignore")
# A slow ramp would not be found: a forecast of the next row follows it (docs/forecasters.md).
pump = make_pump(n_test=2 * 1440, faults=("vibration doubled", "flow halved"))
watch = Watch(from_forecaster(Line(), window=30), budget="1/day").fit(pump.train)
alarms = watch.alarms(pump.test)
print(alarms)
for fault in pump.faults:
    print(f"{fault.kind} at row {fault.start}, fault found: {bool(alarms.active[fault.start : fault.stop].any())}")
