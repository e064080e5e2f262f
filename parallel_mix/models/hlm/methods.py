"""The classifiers by mixtures over distances that cross-validation knows by name, with their grids."""

from __future__ import annotations

from functools import partial

from parallel_mix.models.core.methods import method_of

COMPONENTS = (*range(1, 11), 12, 14, 16)
_mixture = partial(method_of, where="parallel_mix:HLMClassifier", takes="distances")
_kernel = partial(method_of, where="parallel_mix:KernelHLMClassifier", takes="distances")

METHODS = (
    _mixture("hlm-vsh", "HLM (vsh)", n_components=COMPONENTS, clustering="vsh"),
    _mixture("hlm-gknn", "HLM (gknn)", n_components=COMPONENTS, clustering="gkmeans"),
    _mixture("hlm-agg", "HLM (agg)", n_components=COMPONENTS, clustering="ward"),
    _kernel("hlm-kernel", "Kernel HLM"),
    _mixture("hlm-kernel-vsh", "HLM (kernel-vsh)", n_components=(*COMPONENTS, 0), clustering="vsh"),
)
