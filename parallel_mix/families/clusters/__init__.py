"""A clustering by distances alone: what its command, its file, its words and its pictures are."""
