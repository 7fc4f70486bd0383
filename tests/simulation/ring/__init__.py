"""The store-and-forward ring in the simulated world: its files, its threads, what it promised."""
