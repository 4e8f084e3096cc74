"""Three machines, one model: a shared budget, and who needs attention first."""

import warnings

from tisat import Watch
from tisat.datasets.synthetic import make_pump

warnings.simplefilter("ignore")
pumps = {
    f"pump {i}": make_pump(n_train=4000, n_test=900, faults=("vibration doubled",) if i == 2 else (), random_state=i)
    for i in range(3)
}
watch = Watch("mahalanobis", budget="1/day over 3 machines").fit([pump.train for pump in pumps.values()])

found = {name: watch.alarms(pump.test) for name, pump in pumps.items()}
for name in sorted(found, key=lambda name: -max((alarm.peak for alarm in found[name]), default=0.0)):
    print(f"{name}: {len(found[name])} alarms")
    for alarm in found[name]:
        print("   ", alarm)

fleet = watch.fleet(pumps)  # the same, as rows come in
verdicts = [
    fleet.update({name: pump.test.values[t] for name, pump in pumps.items()}, pumps["pump 0"].test.timestamps[t])
    for t in range(800)
]
print("raised live:", sorted({name for each in verdicts for name, verdict in each.items() if verdict.raised}))
