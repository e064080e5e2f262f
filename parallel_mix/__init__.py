"""Mixture modelling and clustering as distributed jobs: one analysis, three schedulers, the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["HMAC", "Signatures", "__version__", "pairwise"]

if TYPE_CHECKING:
    from parallel_mix.kernels.signatures import Signatures
    from parallel_mix.models.hmac import HMAC
    from parallel_mix.models.pairwise import pairwise


def __getattr__(name: str) -> Any:
    """Load what is offered only when it is asked for: scikit-learn takes its time."""
    if name == "HMAC":
        from parallel_mix.models.hmac import HMAC

        return HMAC
    if name == "Signatures":
        from parallel_mix.kernels.signatures import Signatures

        return Signatures
    if name == "pairwise":
        from parallel_mix.models.pairwise import pairwise

        return pairwise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
