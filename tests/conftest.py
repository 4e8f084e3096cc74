"""What every test stands on.

One thread a process: networks this small only lose by more, and by a factor of ten when the machine is busy. And no test passes
or fails by the clock: hypothesis neither has a deadline nor calls a busy machine an error.
"""

import os

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile("tisat", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tisat")
