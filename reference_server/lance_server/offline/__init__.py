"""Work on a data directory that no server is using."""
