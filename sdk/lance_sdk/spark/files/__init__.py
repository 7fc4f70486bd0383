"""Topics in files: data directories, topic folders and segments, without a server."""
