"""A classifier over distances: what its command, its file, its words and its pictures are."""
