"""Mixture modelling and clustering as distributed jobs: one analysis, three schedulers, the same answer."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from parallel_mix import registry

__version__ = "0.1.0"

_OTHERS = {
    "Protocol": "parallel_mix.evaluate.partitions",
    "Signatures": "parallel_mix.kernels.metrics.signatures",
    "crossval": "parallel_mix.evaluate.crossval",
    "pairwise": "parallel_mix.models.distances.pairwise",
}
"""What is offered besides the estimators of families; `__init__.pyi` tells type checkers of both."""

__all__ = sorted([*registry.estimators(), *_OTHERS, "__version__"])


def __getattr__(name: str) -> Any:
    """Load what is offered only when it is asked for: scikit-learn takes its time."""
    modules = registry.estimators() | _OTHERS
    if name in modules:
        return getattr(import_module(modules[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
