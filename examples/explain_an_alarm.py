"""Why an alarm: which channels, what was seen and what was expected, in their own units."""

from tisat import Watch
from tisat.datasets.synthetic import make_pump

pump = make_pump()
for alarm in Watch(budget="1/day").fit(pump.train).alarms(pump.test):
    print(f"{alarm.raised_time}  looks like: {alarm.kind}")
    for reason in alarm.reasons:
        print("   ", reason)
