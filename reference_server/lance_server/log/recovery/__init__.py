"""Recovery: opening a data directory and bringing each topic back after a stop."""
