"""Batch templates."""
