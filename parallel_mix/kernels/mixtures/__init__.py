"""Mixtures: what their components are estimated from, and densities."""
