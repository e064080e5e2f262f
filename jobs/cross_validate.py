"""Compare classifiers by nested cross-validation.

`mpirun -n 2 python -m mpi4py jobs/cross_validate.py ...` does what `mpirun -n 2 parallel-mix crossval ...` does.
"""

from parallel_mix.cli import main_of

if __name__ == "__main__":
    main_of("crossval")
