"""Fit a classifier over distances alone.

`mpirun -n 2 python -m mpi4py jobs/fit_hlm.py ...` does what `mpirun -n 2 parallel-mix hlm fit ...` does.
"""

from parallel_mix.cli import main_of

if __name__ == "__main__":
    main_of("hlm fit")
