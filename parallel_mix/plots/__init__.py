"""What a person sees: figures drawn from a result file."""
