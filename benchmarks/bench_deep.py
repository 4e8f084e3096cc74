"""Cost of the eight deep detectors, compact presets, one run, the same data: windows/s, parameters, memory.

    python benchmarks/bench_deep.py [--channels 38] [--rows 3000]

Each detector trains one epoch on a generated plant and scores as many rows, in a process of its own with one thread. Seconds
are CPU seconds; memory is the peak of the process above what it had with everything imported. Ratios are to the fastest:
absolute figures belong to the machine.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

NAMES = ("deep-svdd", "dagmm", "lstm-vae", "beatgan", "omni-anomaly", "interfusion", "thoc", "anomaly-transformer")


def measure(name, channels, rows):
    import torch

    from tisat.datasets.synthetic import make_plant
    from tisat.detectors import make

    torch.set_num_threads(1)
    plant = make_plant(n_train=rows, n_test=rows, n_channels=channels, n_faults=0)
    torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()  # what torch loads at first use is not the detector's
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    detector = make(name, epochs=1)
    trained = {"windows": 0, "seconds": 0.0}
    original = type(detector)._epoch

    def timed(self, values, starts, *rest, **more):
        begun = time.process_time()
        row = original(self, values, starts, *rest, **more)
        trained["seconds"] += time.process_time() - begun
        trained["windows"] += len(starts)
        return row

    type(detector)._epoch = timed
    detector.fit(plant.train)
    begun = time.process_time()
    scores = detector.decision_function(plant.test)
    seconds = time.process_time() - begun
    return {
        "train": trained["windows"] / trained["seconds"],
        "score": len(scores) / seconds,
        "parameters": sum(weight.numel() for weight in detector.network_.parameters()),
        "window": detector.window,
        "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--channels", type=int, default=38)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.channels, options.rows)))
        return
    found = {}
    size = ["--channels", str(options.channels), "--rows", str(options.rows)]
    for name in NAMES:
        done = subprocess.run([sys.executable, __file__, "--one", name, *size], capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"]
            print(f"{name}: failed: {said[-1]}", flush=True)
        else:
            found[name] = json.loads(done.stdout.splitlines()[-1])
            print(f"{name}: done", file=sys.stderr, flush=True)
    fastest = {kind: max(row[kind] for row in found.values()) for kind in ("train", "score")}
    print(f"{options.channels} channels, {options.rows} rows, one thread, CPU seconds\n")
    print(
        "| detector | window | parameters | training windows/s | of the fastest | scoring windows/s | of the fastest | peak MB |"
    )
    print("|" + "---|" * 8)
    for name, row in found.items():
        print(
            f"| {name} | {row['window']} | {row['parameters']:,} | {row['train']:,.0f} | {row['train'] / fastest['train']:.2f} | "
            f"{row['score']:,.0f} | {row['score'] / fastest['score']:.2f} | {row['megabytes']:.0f} |"
        )


if __name__ == "__main__":
    main()
