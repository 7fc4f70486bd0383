"""What the documentation includes."""
