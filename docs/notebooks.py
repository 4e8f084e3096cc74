"""Write the four notebooks of ``examples``, with what their cells show: ``python docs/notebooks.py``.

The cells stand here as text, so that a change can be read; ``tests/test_examples.py`` runs the written notebooks and compares.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS: dict[str, tuple[str, ...]] = {
    "1-first-alarm": (
        "# From a dataframe to the first alarm\n\nA pump with five channels, one row per minute: three normal days to learn from, then a day in which the vibration doubles.",
        "import pandas as pd\nimport tisat\nfrom tisat.datasets.synthetic import make_pump\n\npump = make_pump(n_train=4320, n_test=1440, faults=('vibration doubled',), random_state=1)\npd.DataFrame(pump.train.values, pump.train.timestamps, pump.train.channels).describe().loc[['mean', 'std', 'min', 'max']].round(2)",
        "Train on the normal rows and give the false alarms you accept.",
        "watch = tisat.Watch(budget='1/day').fit(pump.train)\nprint(watch.calibration)",
        "alarms = watch.alarms(pump.test)\nfor alarm in alarms:\n    print(alarm)",
        "tisat.show_anomalies(watch, pump.test)",
        "The grey area is the fault. With `random_state=0` a false alarm ten minutes before the fault was still on when it began, so the fault raised none of its own. `watch.save('pump.tisat')` keeps the watch; `tisat.Watch.load` opens it.",
    ),
    "2-budget": (
        "# How many false alarms do you accept?\n\nThe threshold follows from the budget. Another budget needs no training data.",
        "import tisat\nfrom tisat.datasets.synthetic import make_pump\n\npump = make_pump()\nwatch = tisat.Watch('linear-last', budget='1/day').fit(pump.train)\nfor budget in ('3/day', '1/day', '2/week'):\n    alarms = watch.recalibrated(budget).alarms(pump.test)\n    print(f'{budget:8} threshold {alarms.threshold:.2f}, {len(alarms)} alarms')",
        "A week of rows supports one alarm in two days. Rarer budgets are extrapolated, and the calibration says so.",
        "for budget in ('1/day', '1/month'):\n    print(*watch.recalibrated(budget).calibration.words[:3], sep='\\n')",
        "watch.calibration.plot().figure",
    ),
    "3-row-by-row": (
        "# Row by row, and after a restart\n\nA monitor gives the same alarms as the whole file. Its state is one file.",
        "from tisat import Monitor, Watch\nfrom tisat.datasets.synthetic import make_pump\n\npump = make_pump(n_train=4000, n_test=900, faults=('vibration doubled',))\nwatch = Watch('mahalanobis', budget='1/day').fit(pump.train)\nwatch.save('pump.tisat')",
        "monitor = watch.monitor(name='pump 7')\nfor row, time in zip(pump.test.values[:500], pump.test.timestamps[:500], strict=True):\n    monitor.update(row, time)\nmonitor.snapshot('pump.state')",
        "The process may end here. Later, or elsewhere:",
        "monitor = Monitor.load(Watch.load('pump.tisat'), 'pump.state')\nfor row, time in zip(pump.test.values[500:], pump.test.timestamps[500:], strict=True):\n    result = monitor.update(row, time)\n    if result.raised:\n        print(result.alarm.raised_time, result.alarm.why)\nprint(monitor.tally)",
    ),
    "4-evaluate": (
        "# Is a detector any good?\n\nScores of your own, labels, and what trivial baselines get on the same labels.",
        "import numpy as np\nfrom tisat.datasets.synthetic import make_plant\nfrom tisat.metrics import best_adjusted_f1, evaluate, spd_score\n\nplant = make_plant(random_state=0)\nlabels = plant.test.labels\nsteps = np.abs(np.diff(plant.test.values, axis=0, prepend=plant.test.values[:1])).max(axis=1)\nrandom = np.random.default_rng(0).random(len(labels))",
        "for name, scores in (('largest step', steps), ('random', random)):\n    print(f'{name:14} SPD {spd_score(labels, scores, delta_max=100):.2f}   point-adjusted F1 {best_adjusted_f1(labels, scores).f1:.2f}')",
        "Point-adjusted F1 prefers random scores; SPD does not.",
        "evaluate(labels, steps, delta_max=100)",
    ),
}  # fmt: skip


def run_cells(cells: list[str], folder: Path) -> list[list[dict[str, Any]]]:
    """Run code cells one after the other in ``folder``; the outputs of each, as a notebook keeps them."""
    session: dict[str, Any] = {"__name__": "__notebook__"}
    shown = []
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in cells:
            out, tree = io.StringIO(), ast.parse(cell)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            value = None
            with contextlib.redirect_stdout(out):
                exec(compile(tree, "cell", "exec"), session)  # noqa: S102  our own cells
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), "cell", "eval"), session)  # noqa: S307
            outputs: list[dict[str, Any]] = []
            if out.getvalue():
                outputs.append({"output_type": "stream", "name": "stdout", "text": out.getvalue().splitlines(True)})
            if value is not None:
                data = _data(value)
                outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
            shown.append(outputs)
    return shown


def _data(value: Any) -> dict[str, Any]:
    """What a notebook shows of a value: a picture, a table, or its text."""
    if hasattr(value, "savefig"):
        file = io.BytesIO()
        value.savefig(file, format="png", dpi=80, metadata={"Software": None})
        return {"image/png": base64.b64encode(file.getvalue()).decode(), "text/plain": ["a picture"]}
    data: dict[str, Any] = {"text/plain": str(value).splitlines(True)}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = value._repr_html_().splitlines(True)
    return data


def notebook(parts: tuple[str, ...], folder: Path) -> dict[str, Any]:
    """A notebook of these parts: text where a part is no program."""
    code = [part for part in parts if _is_code(part)]
    outputs = iter(run_cells(code, folder))
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        cell: dict[str, Any] = {"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}}
        if _is_code(part):
            cell |= {"cell_type": "code", "execution_count": None, "outputs": next(outputs)}
        cells.append({**cell, "source": part.splitlines(True)})
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _is_code(part: str) -> bool:
    try:
        return bool(ast.parse(part).body)
    except SyntaxError:
        return False


def main() -> None:
    """Write them all."""
    for name, parts in NOTEBOOKS.items():
        with tempfile.TemporaryDirectory() as folder:
            text = json.dumps(notebook(parts, Path(folder)), indent=1, ensure_ascii=False)
        (HERE / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{name}.ipynb: {len(text):,} characters\n")


if __name__ == "__main__":
    main()
