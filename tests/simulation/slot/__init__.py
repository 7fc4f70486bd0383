"""A slot with symbols in the simulated world, in the hands of several clients in turn."""
