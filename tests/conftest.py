"""One thread a process in tests: networks this small only lose by more, and by a factor of ten when the machine is busy."""

import os

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
