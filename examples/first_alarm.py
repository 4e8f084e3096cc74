"""From a csv file to the first alarm: fit on a normal week, then look at two new days."""

import tempfile
from pathlib import Path

from tisat import Series, Watch
from tisat.datasets.synthetic import make_pump

folder = Path(tempfile.mkdtemp())
pump = make_pump()
for name, series in (("week", pump.train), ("new", pump.test)):  # as a plant in Germany would export it
    rows = [";".join(["Zeit", *series.channels])]
    for date, values in zip(series.timestamps.astype("datetime64[s]").tolist(), series.values, strict=True):
        rows.append(";".join([f"{date:%d.%m.%Y %H:%M}", *(f"{value:.3f}".replace(".", ",") for value in values)]))
    (folder / f"{name}.csv").write_text("\n".join(rows) + "\n")

week = Series.read(folder / "week.csv")
print(week, "\n ".join(["", *week.notes]))  # what was found out about the file

watch = Watch(budget="once a day").fit(week)
alarms = watch.alarms(folder / "new.csv")
for alarm in alarms:
    print(alarm)
alarms.write(folder / "alarms.csv")  # a spreadsheet reads it
watch.save(folder / "pump.tisat")  # one file: detector, rule, budget, threshold, and how files are read
