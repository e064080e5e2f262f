"""One program a workload: read, fit, write."""
