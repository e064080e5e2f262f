"""Computations of classifiers on similarities."""
