"""Classifiers by mixtures over distances (hypothetical local mapping)."""
