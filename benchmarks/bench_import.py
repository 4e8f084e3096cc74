"""Cold import: `import tisat` beside `from river import anomaly`, in turns, best of several. Target: at most half."""

import importlib.util
import subprocess
import sys
import time

REPEATS = 7
STATEMENTS = {
    "import tisat": "import tisat",
    "from tisat import Series": "from tisat import Series",
    "from tisat import detectors": "from tisat import detectors",
    "from river import anomaly": "from river import anomaly",
}


def seconds(statement):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main():
    statements = {
        name: code for name, code in STATEMENTS.items() if "river" not in code or importlib.util.find_spec("river")
    }
    best = dict.fromkeys(statements, float("inf"))
    empty = float("inf")
    for _ in range(REPEATS):
        empty = min(empty, seconds("pass"))
        for name, code in statements.items():
            best[name] = min(best[name], seconds(code))
    reference = best.get("from river import anomaly")
    if reference is None:
        print("river is not installed (pip install river): no ratio, only what each adds to an empty interpreter")
    for name, took in best.items():
        ratio = "" if reference is None else f"   ratio to river {(took - empty) / (reference - empty):.3f}"
        print(f"{name:32s} {1000 * (took - empty):8.1f} ms over an empty interpreter{ratio}")


if __name__ == "__main__":
    main()
