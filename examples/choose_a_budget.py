"""What a budget buys: the threshold, what the data can support, and what is found at each."""

import warnings

from tisat import Watch
from tisat.datasets.synthetic import make_pump

warnings.simplefilter("ignore")  # budgets a week cannot support are said below instead
pump = make_pump()
watch = Watch("mahalanobis", budget="1/day").fit(pump.train)
print(f"{'budget':22}{'h':>8}{'alarms':>8}{'faults found':>14}   rarest the week can support")
for budget in ("one per shift of 8h", "daily", "2/week", "1/month"):
    other = watch.recalibrated(budget)
    alarms = other.alarms(pump.test)
    found = sum(bool(alarms.active[fault.start : fault.stop].any()) for fault in pump.faults)
    supported = f"1 in {other.calibration.supported:.0f} minutes"
    print(f"{budget:22}{other.calibration.threshold:8.2f}{len(alarms):8}{found:10} of 3   {supported}")
