"""Hierarchical mode association clustering."""
