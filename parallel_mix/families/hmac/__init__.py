"""A clustering by mode association: what its command, its file, its words and its pictures are."""
