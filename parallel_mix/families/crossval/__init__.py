"""A comparison of classifiers: what its command, its file, its words and its pictures are."""
