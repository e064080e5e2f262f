"""Matrices of distances and nearest neighbours."""
