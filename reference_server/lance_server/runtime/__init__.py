"""The server's runtime: clocks, threads, the process."""
