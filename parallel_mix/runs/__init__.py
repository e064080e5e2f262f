"""One run of a command: from options to a running backend, what it keeps of itself, and checks before it begins."""
