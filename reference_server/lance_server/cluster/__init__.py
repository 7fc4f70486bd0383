"""A node of a cluster: a deterministic replica of one ordered log that another system keeps."""
