"""Files: readers, the layout of HDF5, checkpoints and the record of a run; the only place that imports h5py."""
