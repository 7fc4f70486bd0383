"""A cluster over real brokers."""
