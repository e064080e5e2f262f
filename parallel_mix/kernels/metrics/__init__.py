"""Distances between things of one kind: vectors, texts, categories, sets of weighted points."""
