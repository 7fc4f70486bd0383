"""``lwp bench``: throughput and latency of a server."""
