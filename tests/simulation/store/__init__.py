"""The server's store in the simulated world: its plans, its clients, what it promised."""
