"""The base of all models: how a fit speaks with the outside, resumable tasks, the EM loop, sources of data."""
