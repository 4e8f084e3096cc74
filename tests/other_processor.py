"""Run tests as a lesser processor would: ``python tests/other_processor.py tests/detectors ...``

No test may rest on last bits. torch and numpy are told to leave out the newest instructions of this machine (AVX-512 where it
has them, else AVX2), and every library gets one thread; the order of sums is then another one than in ``make test``.
"""

import importlib
import os
import sys


def lesser() -> dict[str, str]:
    """Environment variables that take the newest instruction set away."""
    import torch

    numpy_core = importlib.import_module("numpy._core._multiarray_umath")

    newest = "AVX512" in torch.backends.cpu.get_cpu_capability()
    there = [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__.get(name)]
    without = [name for name in there if not newest or "512" in name or name == "X86_V4"]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return {
        "ATEN_CPU_CAPABILITY": "avx2" if newest else "default",
        "ONEDNN_MAX_CPU_ISA": "AVX2" if newest else "SSE41",
        "OPENBLAS_CORETYPE": "HASWELL" if newest else "NEHALEM",
        "NPY_DISABLE_CPU_FEATURES": " ".join(without),
        **threads,
    }


if __name__ == "__main__":
    settings = lesser()
    print(*(f"{name}={value}" for name, value in settings.items()), flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "2", "--dist", "worksteal", *sys.argv[1:]]
    os.execve(sys.executable, command, {**os.environ, **settings})
