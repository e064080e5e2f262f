"""Where a computation runs: serial, MPI or Dask; the only place that imports mpi4py or dask."""
