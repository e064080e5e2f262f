"""What classifiers compute from similarities."""
