"""Gaussian kernel densities: sums of kernels, and ascents to their modes."""
