"""Nearest neighbours: what its command, its file, its words and its pictures are."""
