"""Mixture modelling and clustering as distributed jobs: one analysis, three schedulers, the same answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from parallel_mix.kernels.signatures import Signatures
    from parallel_mix.models.distance_estimators import (
        GeneralizedKMeans,
        HLMClassifier,
        KernelHLMClassifier,
        VertexSubstitution,
        WardDistance,
    )
    from parallel_mix.models.hmac import HMAC
    from parallel_mix.models.pairwise import pairwise

__all__ = [
    "HMAC",
    "GeneralizedKMeans",
    "HLMClassifier",
    "KernelHLMClassifier",
    "Signatures",
    "VertexSubstitution",
    "WardDistance",
    "__version__",
    "pairwise",
]

_ROOMS = {
    "HMAC": "models.hmac",
    "Signatures": "kernels.signatures",
    "pairwise": "models.pairwise",
    **dict.fromkeys(
        ("GeneralizedKMeans", "HLMClassifier", "KernelHLMClassifier", "VertexSubstitution", "WardDistance"),
        "models.distance_estimators",
    ),
}


def __getattr__(name: str) -> Any:
    """Load what is offered only when it is asked for: scikit-learn takes its time."""
    if name in _ROOMS:
        return getattr(import_module(f"parallel_mix.{_ROOMS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
