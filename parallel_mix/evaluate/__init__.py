"""Evaluation of classifiers: partitions, grids, errors, significance, the papers' tables."""
