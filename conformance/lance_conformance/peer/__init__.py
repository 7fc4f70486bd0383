"""A conversation with the target: recorded byte by byte, under one deadline."""
