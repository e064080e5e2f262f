"""Classifiers on similarities."""
