"""Figures, drawn from result files."""
