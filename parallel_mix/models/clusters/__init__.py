"""Clusterings from distances alone."""
