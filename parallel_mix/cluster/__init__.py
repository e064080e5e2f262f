"""SLURM: batch scripts, submission, what starts and watches the ranks of a job, and what is wrong with a set-up."""
