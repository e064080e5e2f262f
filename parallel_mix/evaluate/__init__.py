"""How good classifiers are: partitions, grids, errors, significance, the papers' tables."""
