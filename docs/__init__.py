"""What makes the guide; no part of what is installed."""
