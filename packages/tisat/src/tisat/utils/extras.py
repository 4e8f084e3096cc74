"""Optional dependencies: imported when used, and missed with the exact command that installs them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tisat.errors import MissingExtraError

# import name -> package and extra that bring it
EXTRAS = {
    "torch": "tisat[deep]",
    "statsforecast": "tisat[forecast]",
    "ray": "tisat[ray]",
    "matplotlib": "tisat[report]",
    "onnxruntime": "tisat[fast]",
    "python_calamine": "tisat[excel]",
    "starlette": "tisat-serve",
    "uvicorn": "tisat-serve",
    "msgspec": "tisat-serve",
    "prometheus_client": "tisat-serve",
    "cramjam": "tisat-serve[prometheus]",
    "paho": "tisat-serve[mqtt]",
    "apprise": "tisat-serve[notify]",
    "confluent_kafka": "tisat-serve[kafka]",
    "nats": "tisat-serve[nats]",
}


def require(module: str, *, whose: str) -> ModuleType:
    """Import ``module`` for ``whose`` sake, or say how to install it.

    Examples
    --------
    >>> require("math", whose="this example").pi > 3
    True
    """
    try:
        return import_module(module)
    except ImportError as error:
        root = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != root:
            raise  # the package is there, something inside it is broken: that is another story
        how = (
            f"pip install './packages/{EXTRAS[root]}' in the folder of tisat's source"
            if root in EXTRAS
            else f"pip install {root}"
        )
        raise MissingExtraError(f"{whose} needs {root}. Install it with: {how}", name=root) from None
