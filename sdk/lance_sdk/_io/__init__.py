"""The drivers: they own threads, tasks, sockets and the clock, and no protocol."""
