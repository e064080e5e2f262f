"""What all models share: what a fit tells the outside, resumable tasks, the EM loop, where data come from."""
