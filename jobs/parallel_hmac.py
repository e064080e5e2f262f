"""Cluster a table by hierarchical mode association, at every bandwidth of a ladder.

`mpirun -n 2 python -m mpi4py jobs/parallel_hmac.py ...` does what `mpirun -n 2 parallel-mix hmac ...` does.
"""

from parallel_mix.cli import main_of

if __name__ == "__main__":
    main_of("hmac")
