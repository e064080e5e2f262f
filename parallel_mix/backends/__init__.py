"""Backends, which run computations: serial, MPI or Dask; the only place that imports mpi4py or dask."""
