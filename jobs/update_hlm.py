"""Let a classifier over distances grow by a batch of new rows.

`mpirun -n 2 python -m mpi4py jobs/update_hlm.py ...` does what `mpirun -n 2 parallel-mix hlm update ...` does.
"""

from parallel_mix.cli import main_of

if __name__ == "__main__":
    main_of("hlm update")
