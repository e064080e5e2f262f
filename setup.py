"""The packages of a wheel: those below `parallel_mix`, and the two folders beside it that are installed in it."""

from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["parallel_mix", "parallel_mix.*"]), "parallel_mix.jobs", "parallel_mix.slurm"])
