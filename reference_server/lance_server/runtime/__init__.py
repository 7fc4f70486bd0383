"""What the server runs on: clocks, threads, the process."""
