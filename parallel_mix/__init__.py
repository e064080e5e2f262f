"""Mixture modelling and clustering as distributed jobs: one analysis, three schedulers, the same answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from parallel_mix.evaluate.crossval import crossval
    from parallel_mix.evaluate.partitions import Protocol
    from parallel_mix.kernels.signatures import Signatures
    from parallel_mix.models.distance_estimators import (
        GeneralizedKMeans,
        HLMClassifier,
        KernelHLMClassifier,
        VertexSubstitution,
        WardDistance,
    )
    from parallel_mix.models.hmac import HMAC
    from parallel_mix.models.local_sda import LocalSDAClassifier
    from parallel_mix.models.neighbour_classifiers import (
        AffinityKNNClassifier,
        KNNClassifier,
        KRIKNNClassifier,
        KRRKNNClassifier,
    )
    from parallel_mix.models.pairwise import pairwise
    from parallel_mix.models.similarity_svm import FeatureSVC, LocalSVC, PotentialSVC, SimilaritySVC

__all__ = [
    "HMAC",
    "AffinityKNNClassifier",
    "FeatureSVC",
    "GeneralizedKMeans",
    "HLMClassifier",
    "KNNClassifier",
    "KRIKNNClassifier",
    "KRRKNNClassifier",
    "KernelHLMClassifier",
    "LocalSDAClassifier",
    "LocalSVC",
    "PotentialSVC",
    "Protocol",
    "Signatures",
    "SimilaritySVC",
    "VertexSubstitution",
    "WardDistance",
    "__version__",
    "crossval",
    "pairwise",
]

_ROOMS = {
    "HMAC": "models.hmac",
    "Signatures": "kernels.signatures",
    "LocalSDAClassifier": "models.local_sda",
    "Protocol": "evaluate.partitions",
    "crossval": "evaluate.crossval",
    "pairwise": "models.pairwise",
    **dict.fromkeys(("FeatureSVC", "LocalSVC", "PotentialSVC", "SimilaritySVC"), "models.similarity_svm"),
    **dict.fromkeys(
        ("AffinityKNNClassifier", "KNNClassifier", "KRIKNNClassifier", "KRRKNNClassifier"),
        "models.neighbour_classifiers",
    ),
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
