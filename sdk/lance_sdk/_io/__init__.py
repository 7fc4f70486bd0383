"""The pumps: they own threads, tasks, sockets and the clock, and no protocol."""
