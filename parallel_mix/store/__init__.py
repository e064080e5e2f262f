"""What is kept: readers, HDF5 layout, checkpoints, run record; the only place that imports h5py."""
