"""Cases about reading: Fetch, Subscribe, commits, times."""
