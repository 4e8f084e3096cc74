"""A short command is short: what takes longer to import than to use is imported when it is asked for."""

import subprocess
import sys

HEAVY = ("sklearn", "pandas", "polars", "scipy.stats", "scipy.optimize", "torch", "matplotlib", "statsmodels")
CODE = """
import sys, tisat
from tisat.cli import main
def call(*words):
    try:
        main([*words])
    except SystemExit as end:
        assert not end.code, end.code
call("fit", "train.csv", "--budget", "1/100 rows", "--out", "m.tisat")
call("alarm", "test.csv", "--model", "m.tisat")
print([name for name in {heavy!r} if name in sys.modules])
"""


def test_fitting_and_raising_alarms_imports_nothing_heavy(tmp_path):
    for name in ("train", "test"):
        rows = "".join(f"{t % 7},{t % 11}\n" for t in range(400))
        (tmp_path / f"{name}.csv").write_text("flow,pressure\n" + rows)
    run = [sys.executable, "-c", CODE.format(heavy=HEAVY)]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"
