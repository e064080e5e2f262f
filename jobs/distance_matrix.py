"""Compute the distances between all pairs of rows, straight to disk.

`mpirun -n 2 python -m mpi4py jobs/distance_matrix.py ...` does what `mpirun -n 2 parallel-mix distances ...` does.
"""

from parallel_mix.cli import main_of

if __name__ == "__main__":
    main_of("distances")
