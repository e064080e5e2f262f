"""Arithmetic: arrays in, arrays out."""
