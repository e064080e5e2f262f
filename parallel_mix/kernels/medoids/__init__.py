"""Clusters from distances alone: the medoids of the least total distance, and Ward's tree."""
