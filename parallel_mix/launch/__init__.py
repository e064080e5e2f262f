"""How a job is started: its backend, its signals, its record."""
