"""Commands about topics, offsets, groups and the server."""
