"""What is fitted: estimators, their loops, and what of them is checkpointed."""
