"""A topic's and the server's state files: catalog, topic metadata, consumer offsets."""
