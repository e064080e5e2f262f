"""Cluster by distances alone.

`mpirun -n 2 python -m mpi4py jobs/cluster_distances.py ...` does what `mpirun -n 2 parallel-mix cluster ...` does.
"""

from parallel_mix.cli import main_of

if __name__ == "__main__":
    main_of("cluster")
