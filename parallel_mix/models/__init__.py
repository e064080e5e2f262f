"""Models: estimators, the loops that fit them, and the states by which a fit goes on."""
