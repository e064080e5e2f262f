"""Mixture modelling and clustering as distributed jobs: one analysis, three schedulers, the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["HMAC", "__version__"]

if TYPE_CHECKING:
    from parallel_mix.models.hmac import HMAC


def __getattr__(name: str) -> Any:
    """Load the estimators only when they are asked for: scikit-learn takes its time."""
    if name == "HMAC":
        from parallel_mix.models.hmac import HMAC

        return HMAC
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
