"""Cost curves: how time and memory grow with size and number."""
